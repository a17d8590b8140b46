// pnpm's strict layout, where a project can import its direct dependencies only: countersign, by its entry points or by its root.
import { cpSync } from "node:fs";
import { join } from "node:path";
import { install, makeModule, manifest, node, project, writeJson } from "./support.mjs";

const pnpmVersion = "10.34.8"; // its overrides stand in package.json

// The files that import what a project has installed of ours, each in a project of its own.
const projects = ["single", "whole"];
const direct = ["countersign"];

/** Fails unless a file compiles that imports what its project has installed, its declarations can be written, and it runs. */
export async function checkPnpm(work, tarballs) {
  const tools = await install(work, { name: "pnpm", type: "module", packages: [`pnpm@${pnpmVersion}`] });
  const pnpm = join(tools, "node_modules", "pnpm", "bin", "pnpm.cjs");
  for (const name of projects) {
    const folder = strictProject(work, name, tarballs);
    await node([pnpm, "install", "--store-dir", join(work, "pnpm-store")], folder);
    await node([join("node_modules", "typescript", "bin", "tsc"), "-p", "."], folder);
    await node([`${name}.js`], folder);
    console.log(`ok pnpm, ${direct.join(" and ")} alone, ${name}`);
  }
}

function strictProject(work, name, tarballs) {
  const folder = makeModule(join(work, `strict-${name}`), "module");
  const { devDependencies } = manifest();
  const toolNames = ["express", "typescript", "@types/node", "@types/express"];
  writeJson(join(folder, "package.json"), {
    name: "consumer",
    private: true,
    type: "module",
    dependencies: Object.fromEntries(direct.map((one) => [one, `file:${tarballs[one]}`])),
    devDependencies: Object.fromEntries(toolNames.map((tool) => [tool, devDependencies[tool]])),
    // What they depend on comes from tarballs as well.
    pnpm: {
      overrides: Object.fromEntries(Object.entries(tarballs).map(([one, file]) => [one, `file:${file}`])),
    },
  });
  cpSync(join(project, "pnpm", `${name}.ts`), join(folder, `${name}.ts`));
  const compilerOptions = {
    module: "nodenext",
    target: "es2022",
    types: ["node"],
    strict: true,
    declaration: true,
    skipLibCheck: false,
  };
  writeJson(join(folder, "tsconfig.json"), { compilerOptions, files: [`${name}.ts`] });
  return folder;
}
