// What a page takes from elsewhere, put in its place: code from files, the output of commands, parts of other documents, findings of the doctor, pictures.
import { execFileSync } from "node:child_process";
import path from "node:path";
import { documentedParts, workspacePackages } from "../../scripts/workspace.mjs";
import { findingKinds } from "../../packages/tools/cli/dist/doctor/findings.js";
import { descriptions } from "../descriptions.mjs";
import { codesOf } from "./codes-page.mjs";
import { fileText } from "./file-text.mjs";
import { withOptions } from "./options.mjs";
import { published, read, root } from "./source.mjs";

// The formatter of the repository puts an empty line into an empty fence.
const fence = /^( *)```(\w+) (file|run)=("[^"]+"|\S+)((?: \w+=(?:"[^"]*"|\S+))*)\n(?: *\n)?\1```$/gm;
const directive = /^<!-- (include|picture|explanations|codes|packages): (.*?) -->$/gm;
const findings = /^<!-- findings -->\n\n([\s\S]*)/m;
const unpublished = /^<!-- before the first release -->\n\n/gm;
const hostileRows = "<!-- hostile rows -->";

/** `page` with every file, output and part of a document in it; `pictureOf(name, alt)` gives the text for a picture. */
export function expand(page, { pictureOf, rewrite }) {
  const expanded = withOptions(page)
    .replaceAll(unpublished, () => (published ? "" : `${read("site/before-release.md")}\n`))
    .replaceAll(fence, (_all, indent, language, kind, value, rest) => {
      const text = kind === "file" ? fileText(unquoted(value), attributes(rest)) : outputOf(unquoted(value));
      const lines = text.trimEnd().split("\n");
      return [`\`\`\`${language}`, ...lines, "```"]
        .map((line) => (line === "" ? "" : indent + line))
        .join("\n");
    })
    .replaceAll(directive, (_all, kind, value) => {
      if (kind === "packages") return packagesIn(value);
      if (kind === "codes") return codesOf(value);
      if (kind === "explanations") return explanations(value.split(" "));
      const [name, rest] = splitOnce(value);
      if (kind === "picture") return pictureOf(name, attributes(rest)["alt"]);
      return rewrite(part(name, attributes(rest)), name).trim();
    })
    .replace(hostileRows, () => rowsOfTests())
    .replace(findings, (_all, rest) => rest.replaceAll(/^### (.*)$/gm, (_title, id) => finding(id)));
  const [left] =
    /^ *```\w+ (?:file|run)=.*$|^<!-- (?:include|picture|explanations|codes|packages|findings|hostile|before|options|end of options)\b.*$/m.exec(
      expanded,
    ) ?? [];
  if (left !== undefined) throw new Error(`cannot be read: ${left}`);
  return expanded;
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
function packagesIn(folder) {
  const found = [...documentedParts].filter(([, { source }]) => source.startsWith(`packages/${folder}/`));
  if (found.length === 0) throw new Error(`there are no packages in ${folder}`);
  const rows = found.map(([name, { manifest }]) => {
    const description = workspacePackages.has(name)
      ? manifest.description
      : descriptions[`reference/packages/${name}`].description;
    return `- [${name}](./packages/${name}.md): ${description}`;
  });
  return rows.toSorted().join("\n");
}

/** The rows of test/adapters, in TypeScript: a process of its own can load it. */
function rowsOfTests() {
  const options = { cwd: root, encoding: "utf8", env: { ...process.env, COUNTERSIGN_STDERR: "off" } };
  const file = "site/scripts/hostile-rows.mjs";
  return once(file, () => execFileSync(process.execPath, [file], options).trim());
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
