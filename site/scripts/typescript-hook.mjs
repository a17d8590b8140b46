// Lets Node 20 import the tests' TypeScript, whose types it cannot strip.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { transformSync } from "@swc/core";

export function load(url, context, next) {
  if (!url.endsWith(".ts")) return next(url, context);
  const { code } = transformSync(readFileSync(fileURLToPath(url), "utf8"), {
    swcrc: false,
    jsc: { target: "es2022", parser: { syntax: "typescript" } },
    module: { type: "es6" },
  });
  return { format: "module", source: code, shortCircuit: true };
}
