/** @type {import("jest").Config} */
export default {
  testEnvironment: "node",
  testMatch: [
    "<rootDir>/packages/*/test/**/*.test.ts",
    "<rootDir>/examples/*/test/**/*.test.ts",
    "<rootDir>/test/**/*.test.ts",
  ],
  extensionsToTreatAsEsm: [".ts"],
  transform: {
    "^.+\\.ts$": ["@swc/jest", { swcrc: false, jsc: { target: "es2022", parser: { syntax: "typescript" } } }],
  },
  modulePathIgnorePatterns: ["<rootDir>/bench/"],
  collectCoverageFrom: ["packages/*/src/**/*.ts"],
  coverageProvider: "v8",
};
