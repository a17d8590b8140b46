// npm run check:tarballs: what is in the tarballs, whether compilers and bundlers find it, how large they are, and what a project
// installs with them. Sizes are bytes of files, as npm counts them: kB are 1,000, MB 1,000,000.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { install, manifest, packAll } from "../consumers/support.mjs";
import { ownDependencies } from "../consumers/own-dependencies.mjs";
import { packagingFaults } from "./packaging.mjs";

const { packages: budgets, installs } = JSON.parse(
  readFileSync(new URL("size-budgets.json", import.meta.url), "utf8"),
);
// What an import, an editor and a debugger read: maps lead to src. And the pages, migrations and files for other tools that a
// manifest names, what npm create writes, and the files of a page.
const expected = [
  /^(package\.json|README\.md|LICENSE)$/,
  /^bin\/countersign\.js$/,
  /^dist\/.+\.(js|d\.ts)(\.map)?$/,
  /^src\/.+\.ts$/,
  /^[A-Z-]+\.md$/,
  /^pages\/.+\.md$/,
  /^migrations\/.+\.sql$/,
  /^(alerts\.yml|dashboard\.json)$/,
  /^templates\/[a-z]+\/.+$/,
  /^page\/.+\.(js|css|html|svg)$/,
];

const work = mkdtempSync(join(tmpdir(), "countersign-tarballs-"));
const faults = [];
try {
  const target = join(work, "tarballs");
  mkdirSync(target);
  const packed = await packAll(target);
  for (const entry of packed) {
    checkTarball(entry);
    // oxlint-disable-next-line no-await-in-loop -- it computes, and waits for nothing
    const found = await packagingFaults(entry.tarball);
    faults.push(...found.map((fault) => `${entry.name}: ${fault}`));
  }
  const known = new Set(packed.map(({ name }) => name));
  for (const name of Object.keys(budgets))
    if (!known.has(name)) faults.push(`${name} has a budget and no tarball`);
  const express = `express@${manifest().devDependencies.express}`;
  const before = installed(await install(work, { name: "bare", type: "module", packages: [express] }));
  for (const [name, budget] of Object.entries(installs))
    await checkInstall(name, budget, { packed, express, before });
} finally {
  rmSync(work, { recursive: true, force: true });
}
for (const fault of faults) console.error(`FAILED ${fault}`);
if (faults.length > 0) process.exitCode = 1;

function checkTarball({ name, files, unpackedSize }) {
  const paths = files.map(({ path }) => path);
  const has = new Set(paths);
  for (const path of paths)
    if (!expected.some((pattern) => pattern.test(path))) faults.push(`${name} has ${path}`);
  for (const path of ["README.md", "LICENSE"]) if (!has.has(path)) faults.push(`${name} has no ${path}`);
  // A map without its source, or a module without its map, shows a debugger nothing.
  const isModule = (file) => /^dist\/.+\.js$/.test(file);
  for (const path of paths.filter(isModule)) {
    const source = path.replace(/^dist\//, "src/").replace(/js$/, "ts");
    for (const needed of [source, `${path}.map`])
      if (!has.has(needed)) faults.push(`${name}: ${path} without ${needed}`);
  }
  for (const path of paths.filter((file) => file.startsWith("src/"))) {
    const compiled = path.replace(/^src\//, "dist/").replace(/ts$/, "js");
    if (!has.has(compiled)) faults.push(`${name}: ${path} is not compiled`);
  }
  within(name, { kB: unpackedSize / 1000 }, { kB: budgets[name] });
}

/** What comes with a package in a project that has Express: other packages, and the bytes of all of them. */
async function checkInstall(name, budget, { packed, express, before }) {
  const own = new Set(ownDependencies([name]));
  const tarballs = packed.filter((entry) => own.has(entry.name)).map(({ tarball }) => tarball);
  const packages = [express, ...tarballs];
  const folder = await install(work, { name: name.replace("/", "-"), type: "module", packages });
  const beside = [...installed(folder)].filter((path) => !before.has(path));
  const bytes = beside.reduce((sum, path) => sum + sizeOf(join(folder, path)), 0);
  within(`${name} installed beside Express`, { packages: beside.length, MB: bytes / 1_000_000 }, budget);
}

function installed(folder) {
  const { packages } = JSON.parse(readFileSync(join(folder, "node_modules", ".package-lock.json"), "utf8"));
  return new Set(Object.keys(packages));
}

// Of a package alone, without those that are installed in it: they stand in the lock file by themselves.
function sizeOf(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.name !== "node_modules")
    .map((entry) => join(folder, entry.name))
    .reduce((sum, path) => sum + (statSync(path).isDirectory() ? sizeOf(path) : statSync(path).size), 0);
}

function within(title, measured, budget) {
  const told = Object.entries(measured).map(([unit, value]) => `${round(value)} of ${budget[unit]} ${unit}`);
  const isMet = Object.entries(measured).every(([unit, value]) => value <= budget[unit]);
  if (!isMet) faults.push(`${title}: ${told.join(", ")}`);
  else console.log(`ok ${title}: ${told.join(", ")}`);
}

function round(value) {
  return Number.isInteger(value) ? value : value.toFixed(value < 100 ? 2 : 0);
}
