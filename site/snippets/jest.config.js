// jest.config.js of a CommonJS project: its transform rewrites the packages
module.exports = {
  transform: { "\\.[jt]sx?$": "@swc/jest" },
  transformIgnorePatterns: [
    "/node_modules/(?!.*(@?countersign|@noble|p-retry|is-network-error)/)",
  ],
};
