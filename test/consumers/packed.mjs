// Installs the packed tarballs into real projects, as users will: ESM and CommonJS, Express 5 and 4, which receive one signed
// payout and one webhook over HTTP; TypeScript projects of many kinds; jest in both module systems; pnpm's strict layout;
// and the command as an operator installs it.
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkJest } from "./jest-projects.mjs";
import { checkPnpm } from "./pnpm-project.mjs";
import { checkOperator } from "./operator-project.mjs";
import { inParallel, install, node, pack, project } from "./support.mjs";
import { checkTypes } from "./type-projects.mjs";

const consumers = [
  { name: "esm-express-5", type: "module", express: "5", entry: "receive.mjs" },
  { name: "esm-express-4", type: "module", express: "4", entry: "receive.mjs" },
  { name: "cjs-express-5", type: "commonjs", express: "5", entry: "receive.cjs" },
];

const work = mkdtempSync(join(tmpdir(), "countersign-consumers-"));
try {
  const tarballs = await pack(work);
  const receiving = consumers.map((consumer) => () => receives(consumer, Object.values(tarballs)));
  const others = [
    () => checkJest(work, tarballs),
    () => checkPnpm(work, tarballs),
    () => checkOperator(work, tarballs),
  ];
  await inParallel([...receiving, ...others], (check) => check());
  await checkTypes(work, tarballs);
} finally {
  rmSync(work, { recursive: true, force: true });
}

async function receives({ name, type, express, entry }, tarballs) {
  const folder = await install(work, { name, type, packages: [`express@${express}`, ...tarballs] });
  for (const file of [entry, "send.mjs"]) cpSync(join(project, file), join(folder, file));
  await node([entry], folder);
  console.log(`ok ${name}`);
}
