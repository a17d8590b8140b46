// npm's `version` step of the workspace, which lerna runs when it has raised the versions and before it commits: writes what lerna
// leaves undone. See docs/releasing.md.
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { composeChangelog, raisePeers, supportedVersions } from "./release-texts.mjs";
import { memberFolders, workspacePackages, root } from "./workspace.mjs";

const read = (...parts) => readFileSync(path.join(root, ...parts), "utf8");
const write = (text, ...parts) => writeFileSync(path.join(root, ...parts), text);

// lerna.json has the new version already.
const { version } = JSON.parse(read("lerna.json"));
const own = new Set([...workspacePackages.values()].map(({ manifest }) => manifest.name));

write(composeChangelog(read("CHANGELOG.md"), version, new Date().toISOString().slice(0, 10)), "CHANGELOG.md");
write(supportedVersions(read("SECURITY.md"), version), "SECURITY.md");
for (const file of [...workspacePackages.values()].map(({ folder }) => `${folder}/package.json`))
  write(
    raisePeers(read(file), version, (name) => own.has(name)),
    file,
  );
// Nobody installs an example, and what lerna would tell of it stands in the changelog of the whole.
for (const folder of memberFolders().filter((member) => member.startsWith("examples/")))
  rmSync(path.join(root, folder, "CHANGELOG.md"), { force: true });
format([
  "CHANGELOG.md",
  "SECURITY.md",
  "packages/*/*/CHANGELOG.md",
  "packages/*/*/package.json",
  "lerna.json",
]);

function format(patterns) {
  const oxfmt = path.join(root, "node_modules", "oxfmt", "bin", "oxfmt");
  const { status } = spawnSync(process.execPath, [oxfmt, ...patterns], {
    cwd: root,
    stdio: ["ignore", 2, 2],
  });
  if (status !== 0) throw new Error("oxfmt failed: see its messages above");
}
