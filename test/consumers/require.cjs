// A CommonJS app loads every published library by require(): the packages are ESM without top-level await.
const { readdirSync, readFileSync } = require("node:fs");
const { join } = require("node:path");

const packages = join(__dirname, "..", "..", "packages");
for (const folder of readdirSync(packages)) {
  const {
    name,
    private: isPrivate,
    exports: exported,
  } = JSON.parse(readFileSync(join(packages, folder, "package.json"), "utf8"));
  // A package of a command alone has nothing to load.
  if (isPrivate || exported["."] === undefined) continue;
  const names = Object.keys(require(name));
  if (names.length === 0) throw new Error(`require("${name}") gave nothing`);
  console.log(process.version, name, names.length);
}
