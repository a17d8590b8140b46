import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { loadEngine } from "@countersign/http-message-signatures/door";
import type { VerificationEngine } from "../dist/algorithms/algorithm.js";

const index = fileURLToPath(new URL("../dist/door.js", import.meta.url));

/** What `script` writes in a process in which sodium-native is not installed. */
function withoutSodium(script: string): string {
  const hidden = `
    const Module = require("node:module");
    const resolve = Module._resolveFilename;
    Module._resolveFilename = (name, ...rest) => {
      if (name === "sodium-native") throw Object.assign(new Error("not found"), { code: "MODULE_NOT_FOUND" });
      return Reflect.apply(resolve, Module, [name, ...rest]);
    };
    import(${JSON.stringify(index)}).then((engine) => { ${script} });`;
  return execFileSync(process.execPath, ["-e", hidden], { encoding: "utf8" });
}

test.each<VerificationEngine>(["native", "noble", "sodium"])("loads %s", (engine) => {
  expect(() => loadEngine(engine)).not.toThrow();
});

test("refuses another engine", () => {
  expect(() => loadEngine("openssl" as VerificationEngine)).toThrow(TypeError);
});

test("says what to install where sodium-native is not, and needs it for nothing else", () => {
  const script = `
    engine.loadEngine("native");
    engine.loadEngine("noble");
    try { engine.loadEngine("sodium"); } catch (error) { console.log(error.name, error.message); }`;
  expect(withoutSodium(script)).toMatch(/^TypeError .*npm install sodium-native/);
});
