// The badges of READMEs: facts of this repository, drawn here, so that no other server has to know them.
import { manifestOf, packageFolder, workspacePackages } from "../../scripts/workspace.mjs";
import { read, repository } from "./source.mjs";

const shown = "countersign";
const names = [...workspacePackages.keys()];
const pictures = "docs/pictures";

/** The badges of the README of the whole, each by the name of its file. */
export function badges() {
  const { engines, license } = manifestOf(".");
  const { installs } = JSON.parse(read("test/release/size-budgets.json"));
  const facts = {
    // `>=20.19.0`
    node: ["Node", engines.node.replace(/^>=(\d+\.\d+)\.0$/, "≥ $1")],
    licence: ["licence", license],
    dependencies: [`dependencies of ${shown}`, String(foreignDependencies(shown).size)],
    // Beside Express; checked by npm run check:tarballs.
    size: [`size of ${shown} installed`, `≤ ${installs[shown].MB} MB`],
  };
  return Object.entries(facts).map(([name, [label, value]]) => [
    `${pictures}/badge-${name}.svg`,
    badge(label, value),
  ]);
}

/** Those of packages alone: one for each number of dependencies. */
export function numberBadges() {
  const numbers = new Set(names.map((name) => foreignDependencies(name).size));
  return [...numbers].map((number) => [numberFile(number), badge("dependencies", String(number))]);
}

const numberFile = (number) => `${pictures}/badge-dependencies-${number}.svg`;

/** The README of each package, from the root, and what it has to hold: the same with its line of badges below the title. */
export function readmesWithBadges() {
  return names.map((name) => {
    const file = `${packageFolder(name)}/README.md`;
    return [file, withoutBadges(read(file)).replace(/^# .*\n\n/, `$&${badgeLine(name)}\n\n`)];
  });
}

/** For pages, which show none. */
export function withoutBadges(readme) {
  return readme.replace(/^(# .*\n\n)\[!\[.*\n\n/, "$1");
}

function badgeLine(name) {
  const up = packageFolder(name).replaceAll(/[^/]+/g, "..");
  const number = foreignDependencies(name).size;
  const ci = `${repository}/actions/workflows/ci.yml`;
  return [
    ["CI", `${ci}/badge.svg`, ci],
    ["Node 20.19 or later", `${up}/${pictures}/badge-node.svg`, `${up}/docs/using.md`],
    ["MIT licence", `${up}/${pictures}/badge-licence.svg`, "LICENSE"],
    [`Dependencies: ${number}`, `${up}/${numberFile(number)}`, `${up}/site/pages/reference/packages.md`],
  ]
    .map(([alt, picture, link]) => `[![${alt}](${picture})](${link})`)
    .join(" ");
}

/** What others have written of what a package needs, its own packages' needs included; without what these need. */
function foreignDependencies(name, seen = new Set()) {
  seen.add(name);
  const { dependencies = {} } = workspacePackages.get(name).manifest;
  const found = Object.keys(dependencies).flatMap((dependency) => {
    const own = names.find((each) => workspacePackages.get(each).manifest.name === dependency);
    if (own === undefined) return [dependency];
    return seen.has(own) ? [] : [...foreignDependencies(own, seen)];
  });
  return new Set(found);
}

function badge(label, value) {
  const [left, right] = [label, value].map((text) => Math.ceil(text.length * 6.6 + 14));
  const width = left + right;
  const text = (at, words) => `<text x="${at}" y="14">${words}</text>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="20" role="img" aria-label="${label}: ${value}"><clipPath id="a"><rect width="${width}" height="20" rx="4"/></clipPath><g clip-path="url(#a)"><rect width="${left}" height="20" fill="#3c3c43"/><rect x="${left}" width="${right}" height="20" fill="#18663f"/></g><g fill="#fff" font-family="Verdana, DejaVu Sans, sans-serif" font-size="11" text-anchor="middle">${text(left / 2, label)}${text(left + right / 2, value)}</g></svg>\n`;
}
