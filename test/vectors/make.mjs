// Makes the vectors: node test/vectors/make.mjs. What comes out is the same each time; --check fails where the files differ.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { Signatures } from "./hand/sign.mjs";
import { finish } from "./hand/vector.mjs";

const themes = readdirSync(new URL("cases/", import.meta.url))
  .map((name) => name.replace(".mjs", ""))
  .toSorted();
const at = (name) => new URL(name, import.meta.url);
const kept = "kept-signatures.json";
const before = existsSync(at(kept)) ? JSON.parse(readFileSync(at(kept), "utf8")) : {};
const signatures = new Signatures(before.signatures ?? {});

const texts = {};
const seen = new Set();
for (const name of themes) {
  const { theme, cases } = await import(at(`cases/${name}.mjs`));
  for (const { id } of cases) {
    if (seen.has(id)) throw new Error(`${id} is there twice`);
    seen.add(id);
  }
  const vectors = cases.map((each) => finish(each, signatures));
  texts[`${name}.json`] = { theme, count: vectors.length, vectors };
}
texts[kept] = {
  source:
    "Random signatures of the vectors by scheme and SHA-256 of key and base: made once, and kept by make.mjs.",
  signatures: signatures.used,
};
for (const [name, value] of Object.entries(texts)) texts[name] = written(value);

const others = readdirSync(at("."))
  .filter((name) => name.endsWith(".json") && !(name in texts))
  .map((name) => [name, readFileSync(at(name), "utf8")]);
texts.SHA256SUMS = [...Object.entries(texts), ...others]
  .map(([name, text]) => `${createHash("sha256").update(text).digest("hex")}  ${name}\n`)
  .toSorted((one, other) => (one.slice(66) < other.slice(66) ? -1 : 1))
  .join("");

const differing = Object.keys(texts).filter(
  (name) => !existsSync(at(name)) || readFileSync(at(name), "utf8") !== texts[name],
);
if (process.argv.includes("--check")) {
  for (const name of differing) console.error(`${name} is not what make.mjs makes`);
  process.exitCode = differing.length === 0 ? 0 : 1;
} else {
  for (const name of differing) writeFileSync(at(name), texts[name]);
}
console.log(`${seen.size} vectors, ${differing.length} files differ`);

// One vector, or one kept signature, a line: what a change of one does is a line of a diff.
function written(value) {
  const members = Object.entries(value).map(([name, member]) => {
    if (Array.isArray(member))
      return `"${name}": ${lines(
        "[]",
        member.map((each) => JSON.stringify(each)),
      )}`;
    if (typeof member !== "object") return `"${name}": ${JSON.stringify(member)}`;
    const entries = Object.entries(member).map((entry) =>
      entry.map((part) => JSON.stringify(part)).join(": "),
    );
    return `"${name}": ${lines("{}", entries)}`;
  });
  return `${lines("{}", members)}\n`;
}

function lines([open, close], items) {
  return `${open}\n${items.join(",\n")}\n${close}`;
}
