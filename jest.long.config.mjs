import process from "node:process";

// Every property with all its cases: test/support/runs/share.ts
process.env["COUNTERSIGN_TESTS"] ??= "all";

export { long as default } from "./jest.config.mjs";
