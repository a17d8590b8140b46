// npm run pack [-- FOLDER]: packs every package into a folder, .packed by default, and prints how projects install them from there.
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { ensureReady, root, runScript } from "./setup.mjs";

runScript(async () => {
  ensureReady();
  const folder = path.resolve(
    process.env.INIT_CWD ?? process.cwd(),
    process.argv[2] ?? path.join(root, ".packed"),
  );
  mkdirSync(folder, { recursive: true });
  // Those of another version would be installed beside these.
  for (const name of readdirSync(folder).filter((file) => file.endsWith(".tgz")))
    rmSync(path.join(folder, name));
  const { packAll } = await import("../test/consumers/support.mjs");
  const packed = await packAll(folder);
  const { pageInstalls } = await import("./page-installs.mjs");
  const tarballs = Object.fromEntries(packed.map(({ name, tarball }) => [name, tarball]));
  console.log(instructions(folder, packed.length, pageInstalls(tarballs)));
});

function instructions(folder, count, installs) {
  const creator = path.join(root, "packages/tools/create-countersign/dist/cli.js");
  return `${count} packages are in ${folder}.

In place of npm create countersign@latest my-platform:

  node ${creator} my-platform
  cd my-platform
  npm install ${folder}/*.tgz

In place of all npm install of a page, one line with the packages of that page:

${installs.map(({ line, files }) => `${files.join("\n")}\n  ${line}`).join("\n\n")}`;
}
