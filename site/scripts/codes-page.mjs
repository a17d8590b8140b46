// The page of all codes: what is written of each in codes/, with what the packages say when it is made to happen.
import { existsSync } from "node:fs";
import path from "node:path";
import { documentedParts, sourceFilesOf, workspacePackages } from "../../scripts/workspace.mjs";
import { groups } from "../codes/index.mjs";
import { read, root } from "./source.mjs";

const opening = `---
outline: [2, 2]
pageClass: codes
---

# Codes

Each refusal has a code. It stands in the error's \`code\`, in the events of \`countersign:guard\`, and, where nobody listens, on a line on
stderr; the error's member \`docs\` is the address of its place on this page. Answers never have the
address, and those with 401 not even the code: they all look alike. The examples are what the packages said when this page was built.

A code that is not here is one of your own app's guards, or of a library for the other side: [client](./packages/client.md#codes),
[sandbox](./packages/sandbox.md#codes).
`;

/** `happen` makes a code happen, and gives its words. */
export async function codesPage({ happen = (_code, { provoke }) => provoke() } = {}) {
  const parts = [opening, table()];
  for (const { title, codes } of groups) {
    parts.push(`## ${title}\n`);
    // One at a time: a line on stderr is the process's.
    for (const [code, entry] of Object.entries(codes)) parts.push(await section(code, entry, happen));
  }
  return parts.join("\n");
}

/** Each code with its status, the packages that tell it, and what is wrong in one sentence. */
function table() {
  const owners = ownersOfFunctions();
  const rows = groups.flatMap((group) =>
    Object.entries(group.codes).map(([code, entry]) => {
      const packages = new Set(entry.by.map((name) => (name === "all" ? name : owners.get(name))));
      if (packages.has(undefined)) throw new Error(`${code}: no package has all of ${entry.by.join(", ")}`);
      const status = entry.notice ? "notice" : (entry.status ?? "none");
      return `| [${code}](#${code}) | ${status} | ${[...packages].join(", ")} | ${firstSentence(entry.cause)} |`;
    }),
  );
  const head = "| code | status | package | cause |\n| --- | --- | --- | --- |";
  return `## All codes\n\n<!-- filter: status, package -->\n\n${head}\n${rows.join("\n")}\n`;
}

const mostInARow = 5;

/**
 * The codes that functions of a package tell, by status, each with a link from a page beside its page. Of many in a row those of
 * another check are on its page.
 */
export function codesOf(name) {
  const owners = ownersOfFunctions();
  const byStatus = new Map();
  for (const [code, entry] of groups.flatMap((group) => Object.entries(group.codes))) {
    if (!entry.by.some((of) => owners.get(of) === name)) continue;
    const status = entry.notice ? "Notices" : (entry.status ?? "Without an answer");
    const packages = entry.by.map((of) => owners.get(of));
    const owner = packages.find(isCheck) ?? packages[0];
    byStatus.set(status, [...(byStatus.get(status) ?? []), { code, owner }]);
  }
  if (byStatus.size === 0) throw new Error(`no function of ${name} tells a code`);
  const rank = (status) => (typeof status === "number" ? status : status.length * 1000);
  const rows = [...byStatus].toSorted(([one], [other]) => rank(one) - rank(other));
  return rows.map(([status, codes]) => `- ${status}: ${rowOf(name, codes)}`).join("\n");
}

function rowOf(name, codes) {
  const isOther = ({ owner }) => codes.length > mostInARow && owner !== name && hasCodes(owner);
  const own = codes.filter((each) => !isOther(each)).map(({ code }) => `[\`${code}\`](../codes.md#${code})`);
  const others = new Set(codes.filter(isOther).map(({ owner }) => `[${owner}](./${owner}.md#codes)`));
  return [own, [...others]]
    .filter((list) => list.length > 0)
    .map((list, index) =>
      list === own ? list.join(", ") : `${index === 0 ? "those" : "and those"} of ${list.join(", ")}`,
    )
    .join(", ");
}

function isCheck(name) {
  return workspacePackages.get(name)?.folder.startsWith("packages/checks/");
}

function hasCodes(name) {
  const page = `site/pages/reference/packages/${name}.md`;
  return existsSync(path.join(root, page)) && read(page).includes(`<!-- codes: ${name} -->`);
}

const firstSentence = (text) => /^[\s\S]*?[.?!](?=\s+[A-Z`]|$)/.exec(text)[0].replaceAll("|", "\\|");

/** The package of each function that a package has written itself. */
function ownersOfFunctions() {
  const all = [...documentedParts.keys()].flatMap((name) =>
    sourceFilesOf(name)
      .flatMap((file) => [...read(file).matchAll(/^export (?:async )?function (\w+)/gm)])
      .map(([, of]) => [of, name]),
  );
  return new Map(all);
}

/** For a terminal: links are their words, and those after a colon are left out. */
export const wordsOf = (text) => text.replaceAll(/: \[[^\]]+\]\([^)]+\)|\[([^\]]+)\]\([^)]+\)/g, "$1");

/** The codes as `countersign code` reads them, in JSON. */
export function codesJson() {
  const entries = groups.flatMap((group) => Object.entries(group.codes));
  const shown = entries.map(([code, entry]) => {
    const { by, cause, remedy } = entry;
    return [code, { kind: kindOf(entry), by: by.join(", "), cause: wordsOf(cause), remedy: wordsOf(remedy) }];
  });
  return `${JSON.stringify(Object.fromEntries(shown), undefined, 2)}\n`;
}

function kindOf({ status, notice }) {
  return notice ? "notice" : status === undefined ? "no answer of its own" : `status ${status}`;
}

async function section(code, entry, happen) {
  const { by, cause, remedy, example, provoke } = entry;
  const names = by.map((name) => (name === "all" ? "all" : `\`${name}\``)).join(", ");
  const head = `### ${code}\n\n*${kindOf(entry)} · ${names}*\n\n**Cause.** ${cause}\n\n**Remedy.** ${remedy}\n`;
  if (provoke === undefined) return head;
  const happened = await happen(code, entry);
  if (happened.code !== code) throw new Error(`${code}: what happened is ${happened.code}`);
  return `${head}\n**Example.** ${example}\n\n${exampleFence(happened.text)}\n`;
}

/** What a package said, as the page shows it: addresses of this page without their beginning, and lines that do not have to be scrolled. */
export function exampleFence(text) {
  const shown = text.replaceAll(/https:\S+\/reference\/codes\.\w+#/g, "…#");
  const lines = shown.split("\n").map(wrappedLine);
  // JSON has no string on two lines.
  const isJson = text.startsWith("{") && lines.join("\n") === shown;
  return `\`\`\`${isJson ? "json" : "text"}\n${lines.join("\n")}\n\`\`\``;
}

const columns = 78;

/** `line` on several where it is too long: the others begin deeper. A word stays whole. */
function wrappedLine(line) {
  const margin = `${/^ */.exec(line)[0]}  `;
  const lines = [];
  let rest = line;
  while (rest.length > columns) {
    const before = rest.lastIndexOf(" ", columns);
    const at = before > margin.length ? before : rest.indexOf(" ", columns);
    if (at < 0) break;
    lines.push(rest.slice(0, at));
    rest = margin + rest.slice(at + 1);
  }
  return [...lines, rest].join("\n");
}
