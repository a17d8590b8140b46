// jest.config.js, in a CommonJS project: a transform makes CommonJS of the packages
module.exports = {
  transform: { "\\.[jt]sx?$": "@swc/jest" },
  transformIgnorePatterns: ["/node_modules/(?!.*(@?countersign|@noble|p-retry|is-network-error)/)"],
};
