// What a page of site/pages repeats of elsewhere: code of files that are compiled and tested, the output of commands, tables of options
// and codes, parts of other documents, findings of the doctor. The page has it in its place, so that it can be read where it lies;
// `npm run docs:update` writes it again, and test/docs/pages.test.ts fails until then.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { documentedParts, workspacePackages } from "../../scripts/workspace.mjs";
import { findingKinds } from "../../packages/tools/cli/dist/doctor/findings.js";
import { descriptions } from "../descriptions.mjs";
import { codesOf, codesTable } from "./codes.mjs";
import { fileText } from "./file-text.mjs";
import { outsideCode, relative } from "./links.mjs";
import { optionTable } from "./options.mjs";
import { published, read, root } from "./source.mjs";

const fence = /^( *)```(\w+) (file|run)=("[^"]+"|\S+)((?: \w+=(?:"[^"]*"|\S+))*)\n[\s\S]*?^\1```$/gm;
const note = "before the first release";

/** By the word that begins a mark: what stands between it and its end. `own` is what the mark says beside its subject. */
const blocks = {
  options: (name, own) => optionTable(name, own),
  codes: (name) => codesOf(name),
  "all codes": () => codesTable(),
  packages: (folder, _own, file) => packagesIn(folder, file),
  explanations: (names) => explanations(names.split(" ")),
  include: (what, _own, file) => included(what, file),
  "hostile rows": () => rowsOfTests(),
  [note]: () => read("site/before-release.md").trim(),
};
const kinds = Object.keys(blocks).join("|");
const block = new RegExp(
  String.raw`^<!-- (${kinds})(?:: (.+?))?(?: -->|\n([\s\S]*?)\n-->)\n\n[\s\S]*?^<!-- end of \1 -->$(\n\n)?`,
  "gm",
);
const beginnings = new RegExp(String.raw`^<!-- (?:${kinds})\b`, "gm");
const ends = /^<!-- end of (?!tabs).* -->$/gm;
const findings = /(?<=^<!-- findings -->\n\n)[\s\S]*/m;

/** `text` of the page `file`, both as they are in the repository, with all that it repeats as it is today. */
export function filled(file, text) {
  if ((text.match(beginnings) ?? []).length !== (text.match(ends) ?? []).length)
    throw new Error(`${file}: a mark has no end`);
  return text
    .replaceAll(fence, (all, indent, _language, kind, value, rest) => {
      const shown = kind === "file" ? fileText(unquoted(value), attributes(rest)) : outputOf(unquoted(value));
      const lines = shown.trimEnd().split("\n");
      return [
        all.split("\n", 1)[0],
        ...lines.map((line) => (line === "" ? "" : indent + line)),
        `${indent}\`\`\``,
      ].join("\n");
    })
    .replaceAll(block, (all, kind, subject, own, space = "") => {
      if (kind === note && published) return "";
      const mark = all.slice(0, all.indexOf("-->"));
      return `${mark}-->\n\n${blocks[kind](subject, own, file)}\n\n<!-- end of ${kind} -->${space}`;
    })
    .replace(findings, (sections) => sections.replaceAll(/^### (.*)\n\n.*$/gm, (_title, id) => finding(id)));
}

const marks = new RegExp(
  String.raw`^<!-- (?:(?:${kinds})\b[\s\S]*?|findings|end of (?!tabs).*?) ?-->\n+`,
  "gm",
);

/** For a reader who sees no mark: without them, and with the language alone beside a fence. */
export function withoutMarks(text) {
  return text.replaceAll(marks, "").replaceAll(/^( *```\w+) (?:file|run)=.*$/gm, "$1");
}

// Each starts a process, and pages are expanded several times in one run.
const printed = new Map();

function once(what, make) {
  if (!printed.has(what)) printed.set(what, make());
  return printed.get(what);
}

/** What a command of this repository prints, without colours. */
function outputOf(command) {
  return once(command, () => run(command));
}

function run(command) {
  const [name, ...args] = command.split(" ");
  const file = { countersign: "packages/tools/cli/dist/cli.js" }[name];
  if (file === undefined) throw new Error(`no page may run ${name}`);
  const env = { ...process.env, NO_COLOR: "1", COLUMNS: "80" };
  return execFileSync(process.execPath, [path.join(root, file), ...args], {
    cwd: root,
    env,
    encoding: "utf8",
  });
}

/** The packages of a folder, each by what its manifest says of it, and their entry points that have a page. */
function packagesIn(folder, file) {
  const found = [...documentedParts].filter(([, { source }]) => source.startsWith(`packages/${folder}/`));
  if (found.length === 0) throw new Error(`there are no packages in ${folder}`);
  const rows = found.map(([name, { source, manifest }]) => {
    const page = `site/pages/reference/packages/${name}.md`;
    const place = existsSync(path.join(root, page)) ? page : `${path.posix.dirname(source)}/README.md`;
    const description = workspacePackages.has(name)
      ? manifest.description
      : descriptions[`reference/packages/${name}`].description;
    return `- [${name}](${relative(file, place)}): ${description}`;
  });
  return rows.toSorted().join("\n");
}

/** The rows of test/adapters, in TypeScript: a process of its own can load it. */
function rowsOfTests() {
  const options = { cwd: root, encoding: "utf8", env: { ...process.env, COUNTERSIGN_STDERR: "off" } };
  const file = "site/scripts/hostile-rows.mjs";
  return once(file, () => execFileSync(process.execPath, [file], options).trim());
}

/** A part of a document, with its links as they lead from `file`. */
function included(what, file) {
  const [document, rest] = splitOnce(what);
  return outsideCode(part(document, attributes(rest)), (text) =>
    text.replaceAll(/\]\((?!https?:|#|mailto:)([^)\s]+)\)/g, (_all, target) => {
      const place = path.posix.join(path.posix.dirname(document), target);
      return `](${relative(file, place)})`;
    }),
  ).trim();
}

/** A document, or its lines after the first one with `from` and before the next one with `to`. */
function part(file, { from, to }) {
  const lines = read(file).split("\n");
  const begin = from === undefined ? 0 : lines.findIndex((line) => line.includes(from)) + 1;
  if (from !== undefined && begin === 0) throw new Error(`${file} has no line with ${from}`);
  const length = to === undefined ? -1 : lines.slice(begin).findIndex((line) => line.includes(to));
  if (to !== undefined && length < 0) throw new Error(`${file} has no line with ${to} after ${from}`);
  return lines.slice(begin, length < 0 ? undefined : begin + length).join("\n");
}

/** The title of a finding of the doctor, with its severity and its remedy; why it matters is the page's own. */
function finding(id) {
  const kind = findingKinds[id];
  if (kind === undefined) throw new Error(`the doctor has no finding ${id}`);
  const [severity, remedy] = kind;
  return `### ${id}\n\n${severity[0].toUpperCase()}${severity.slice(1)}. ${remedy}`;
}

const samples = ["mistakes.txt", "other-mistakes.txt"];
const subjects = new Set(["digest", "body", "hmac", "basic", "address", "claim", "payload"]);

/** Each identifier of explain that begins with one of `names` (of a signature: with no other name), and the sentence of its first sample. */
function explanations(names) {
  const sentences = new Map();
  for (const row of samples.flatMap((name) =>
    read("packages/tools/cli/test/explain", name).trimEnd().split("\n"),
  )) {
    const [, what, sentence] = row.split(" | ");
    const [name] = what.split("-");
    const subject = subjects.has(name) ? name : "signature";
    if (what === "verifies" || what.includes("+") || !names.includes(subject) || sentences.has(what))
      continue;
    sentences.set(what, `- \`${what}\`: \`${sentence}\``);
  }
  if (sentences.size === 0) throw new Error(`no explanation is of ${names.join(", ")}`);
  return [...sentences.values()].join("\n");
}

function splitOnce(text) {
  const at = text.indexOf(" ");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at)];
}

function attributes(text) {
  const found = text.matchAll(/ (\w+)=("[^"]*"|\S+)/g);
  return Object.fromEntries([...found].map(([, name, value]) => [name, unquoted(value)]));
}

function unquoted(text) {
  return text.startsWith('"') ? text.slice(1, -1) : text;
}
