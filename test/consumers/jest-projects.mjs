// A consumer's own jest, in CommonJS and in ES modules. The configuration is the one in docs/using.md, read from there.
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeModule, node, project, root, run, workspaceTools } from "./support.mjs";

export const jestTools = workspaceTools("jest", "@swc/core", "@swc/jest");
const jest = join("..", "node_modules", "jest", "bin", "jest.js");

/** Fails unless a payout and a webhook are received in both, and CommonJS without the configuration is refused as documented. */
export async function checkJest(folder) {
  await checkCommonJs(folder);
  await checkEsm(folder);
}

async function checkCommonJs(folder) {
  const consumer = makeModule(join(folder, "jest-cjs"), "commonjs");
  cpSync(join(project, "jest", "commonjs.test.cjs"), join(consumer, "receive.test.js"));
  // The consumer's own code in ESM syntax goes through the transform too.
  cpSync(join(project, "send.mjs"), join(consumer, "send.js"));
  const without = await run(process.execPath, [jest, "--ci"], consumer);
  if (without.status === 0 || !without.stderr.includes("Must use import to load ES Module")) {
    throw new Error(`jest in CommonJS without configuration: ${without.status}\n${without.stderr}`);
  }
  console.log("ok jest in CommonJS without configuration: refused, as documented");
  writeFileSync(join(consumer, "jest.config.js"), documentedConfiguration());
  await node([jest, "--ci"], consumer);
  console.log("ok jest in CommonJS");
}

async function checkEsm(folder) {
  const consumer = makeModule(join(folder, "jest-esm"), "module");
  cpSync(join(project, "jest", "esm.test.mjs"), join(consumer, "receive.test.mjs"));
  cpSync(join(project, "send.mjs"), join(consumer, "send.mjs"));
  const testMatch = ["--testMatch", "**/*.test.mjs"];
  await node(["--experimental-vm-modules", jest, "--ci", ...testMatch], consumer);
  console.log("ok jest in ES modules");
}

function documentedConfiguration() {
  const page = readFileSync(join(root, "docs", "using.md"), "utf8");
  const config = /```js\n(\/\/ jest\.config\.js\n[\s\S]*?)```/.exec(page)?.[1];
  if (config === undefined) throw new Error("docs/using.md has no block that begins with // jest.config.js");
  return config;
}
