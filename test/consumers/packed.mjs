// Installs the packed tarballs into real projects, as users will: ESM and CommonJS, Express 5 and 4, which receive one signed
// payout and one webhook over HTTP; TypeScript projects of many kinds; jest in both module systems; pnpm's strict layout;
// and the command as an operator installs it.
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkJest, jestTools } from "./jest-projects.mjs";
import { checkPnpm } from "./pnpm-project.mjs";
import { checkOperator } from "./operator-project.mjs";
import { inParallel, install, makeModule, node, pack, project } from "./support.mjs";
import { checkTypes, typeDependencies } from "./type-projects.mjs";

const work = mkdtempSync(join(tmpdir(), "countersign-consumers-"));
try {
  const tarballs = await pack(work);
  const own = Object.values(tarballs);
  await inParallel(
    [
      () => checkExpress4(own),
      () => checkExpress5(own, typeDependencies(tarballs)),
      () => checkPnpm(work, tarballs),
      () => checkOperator(work, tarballs),
    ],
    (check) => check(),
  );
} finally {
  rmSync(work, { recursive: true, force: true });
}

async function checkExpress4(own) {
  const folder = await install(work, { name: "express-4", type: "module", packages: ["express@4", ...own] });
  await receives(folder, "receive.mjs", "esm-express-4");
}

async function checkExpress5(own, libraries) {
  const packages = [...own, ...libraries, ...jestTools];
  const folder = await install(work, { name: "express-5", type: "module", packages });
  await receives(folder, "receive.mjs", "esm-express-5");
  await receives(makeModule(join(folder, "required"), "commonjs"), "receive.cjs", "cjs-express-5");
  await checkJest(folder);
  await checkTypes(folder);
}

async function receives(folder, entry, name) {
  for (const file of [entry, "send.mjs"]) cpSync(join(project, file), join(folder, file));
  await node([entry], folder);
  console.log(`ok ${name}`);
}
