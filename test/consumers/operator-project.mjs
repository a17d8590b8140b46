// Where a platform runs: the command and the packages of one engine. No sandbox comes with them, and no other engine.
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ownDependencies } from "./own-dependencies.mjs";
import { install, manifest, node, run } from "./support.mjs";

const platform = `
import { createStores } from "@countersign/store-sql";
import Database from "libsql";
const { idempotency } = createStores({ database: new Database("platform.db") });
idempotency.claim("key", { token: "t", fingerprint: "f", leaseMs: 60_000, recovery: "hold" });
idempotency.hold("key", "t", "why");
idempotency.close();
`;

/** Fails unless the command operates a store there, and says what to install for what it cannot do. */
export async function checkOperator(work, tarballs) {
  const names = ownDependencies(["@countersign/cli", "@countersign/store-sql"]);
  const packages = [...names.map((name) => tarballs[name]), `libsql@${manifest().devDependencies.libsql}`];
  const folder = await install(work, { name: "operator", type: "module", packages });
  const installed = readdirSync(join(folder, "node_modules", "@countersign"));
  for (const name of ["devtools", "store-redis"]) {
    if (installed.includes(name)) throw new Error(`${name} comes with the command`);
  }
  writeFileSync(join(folder, "platform.mjs"), platform);
  await node(["platform.mjs"], folder);
  const command = join("node_modules", "@countersign", "cli", "dist", "cli.js");
  const held = await run(
    process.execPath,
    [command, "keys", "held", "--store-url", "sqlite:platform.db"],
    folder,
  );
  if (held.status !== 1 || !/^key$[^]*^  why +/m.test(held.stdout))
    throw new Error(`keys held ended with ${held.status}\n${held.stdout}${held.stderr}`);
  await refuses(folder, [command, "sandbox"], "--save-dev @countersign/devtools");
  const prune = [command, "prune", "--store-url", "redis://127.0.0.1:1"];
  await refuses(folder, prune, "@countersign/store-redis redis");
  console.log("ok operator");
}

async function refuses(folder, args, missing) {
  const { status, stderr } = await run(process.execPath, args, folder);
  if (status === 2 && stderr.endsWith(`; run npm install ${missing}\n`)) return;
  throw new Error(`${args[1]} ended with ${status}: ${stderr}`);
}
