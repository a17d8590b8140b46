// A CommonJS app loads every published package by require(): the packages are ESM without top-level await.
const { readdirSync, readFileSync } = require("node:fs");
const { join } = require("node:path");

const packages = join(__dirname, "..", "..", "packages");
for (const folder of readdirSync(packages)) {
  const { name, private: isPrivate } = JSON.parse(
    readFileSync(join(packages, folder, "package.json"), "utf8"),
  );
  if (isPrivate) continue;
  const names = Object.keys(require(name));
  if (names.length === 0) throw new Error(`require("${name}") gave nothing`);
  console.log(process.version, name, names.length);
}
