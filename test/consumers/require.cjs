// A CommonJS app loads every published library by require(): the packages are ESM without top-level await.
const { workspacePackages } = require("../../scripts/workspace.mjs");

for (const { manifest } of workspacePackages.values()) {
  const { name, private: isPrivate, exports: exported } = manifest;
  if (isPrivate) continue;
  // A package of a command alone has nothing to load.
  for (const subpath of Object.keys(exported).filter((path) => exported[path].types !== undefined)) {
    const entry = name + subpath.slice(1);
    const names = Object.keys(require(entry));
    if (names.length === 0) throw new Error(`require("${entry}") gave nothing`);
    console.log(process.version, entry, names.length);
  }
}
