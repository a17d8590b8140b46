import process from "node:process";

// Every property with all its cases: test/support/runs/fuzz-runs.ts
process.env["COUNTERSIGN_FUZZ"] ??= "all";

export { long as default } from "./jest.config.mjs";
