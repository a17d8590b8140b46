// pnpm's strict layout, where a project can import its direct dependencies only: payout and webhooks alone are installed.
import { cpSync } from "node:fs";
import { join } from "node:path";
import { install, makeModule, manifest, node, project, writeJson } from "./support.mjs";

const pnpmVersion = "10.34.8"; // its overrides stand in package.json

/** Fails unless an endpoint of each compiles, its declarations can be written, and both export what a body parser needs. */
export async function checkPnpm(work, tarballs) {
  const tools = await install(work, { name: "pnpm", type: "module", packages: [`pnpm@${pnpmVersion}`] });
  const folder = makeModule(join(work, "strict"), "module");
  const direct = ["@countersign/payout", "@countersign/webhooks"];
  const { devDependencies } = manifest();
  const toolNames = ["express", "typescript", "@types/node", "@types/express"];
  writeJson(join(folder, "package.json"), {
    name: "consumer",
    private: true,
    type: "module",
    dependencies: Object.fromEntries(direct.map((name) => [name, `file:${tarballs[name]}`])),
    devDependencies: Object.fromEntries(toolNames.map((name) => [name, devDependencies[name]])),
    // What they depend on comes from tarballs as well.
    pnpm: {
      overrides: Object.fromEntries(Object.entries(tarballs).map(([name, file]) => [name, `file:${file}`])),
    },
  });
  const pnpm = join(tools, "node_modules", "pnpm", "bin", "pnpm.cjs");
  await node([pnpm, "install", "--store-dir", join(work, "pnpm-store")], folder);
  cpSync(join(project, "pnpm", "app.ts"), join(folder, "app.ts"));
  const compilerOptions = {
    module: "nodenext",
    target: "es2022",
    types: ["node"],
    strict: true,
    declaration: true,
    skipLibCheck: false,
  };
  writeJson(join(folder, "tsconfig.json"), { compilerOptions, files: ["app.ts"] });
  await node([join("node_modules", "typescript", "bin", "tsc"), "-p", "."], folder);
  await node(["app.js"], folder);
  console.log("ok pnpm");
}
