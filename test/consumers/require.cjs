// A CommonJS app loads every published library by require(): the packages are ESM without top-level await.
const { workspacePackages } = require("../../scripts/workspace.mjs");

for (const { manifest } of workspacePackages.values()) {
  const { name, private: isPrivate, exports: exported } = manifest;
  // A package of a command alone has nothing to load.
  if (isPrivate || exported["."] === undefined) continue;
  const names = Object.keys(require(name));
  if (names.length === 0) throw new Error(`require("${name}") gave nothing`);
  console.log(process.version, name, names.length);
}
