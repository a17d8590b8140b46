// What pages repeat of the page of codes, and what that page repeats of the packages: what they say when a code is made to happen.
import { existsSync } from "node:fs";
import path from "node:path";
import { documentedParts, sourceFilesOf, workspacePackages } from "../../scripts/workspace.mjs";
import { allCodes } from "../../packages/tools/cli/dist/explain/codes.js";
import { provocations } from "../codes/index.mjs";
import { read, root } from "./source.mjs";

/** Each code with its status, the packages that tell it, and what is wrong in one sentence. */
export function codesTable() {
  const rows = [...allCodes()].map(([code, { kind, by, cause }]) => {
    const packages = new Set(ownersOf(by));
    if (packages.has(undefined)) throw new Error(`${code}: no package has all of ${by}`);
    return `| [${code}](#${code}) | ${statusOf(kind)} | ${[...packages].join(", ")} | ${firstSentence(cause)} |`;
  });
  return `<!-- filter: status, package -->\n\n| code | status | package | cause |\n| --- | --- | --- | --- |\n${rows.join("\n")}`;
}

/** `409`, `notice`, or `none`. */
const statusOf = (kind) => /^status (\d+)$/.exec(kind)?.[1] ?? (kind === "notice" ? kind : "none");

function ownersOf(by) {
  return by.split(", ").map((name) => (name === "all" ? name : ownersOfFunctions().get(name)));
}

const headings = { notice: "Notices", none: "Without an answer" };
const mostInARow = 5;

/**
 * The codes that functions of a package tell, by status, each with a link from a page beside its page. Of many in a row those of
 * another check are on its page.
 */
export function codesOf(name) {
  const byStatus = new Map();
  for (const [code, { kind, by }] of allCodes()) {
    const packages = ownersOf(by);
    if (!packages.includes(name)) continue;
    const status = headings[statusOf(kind)] ?? Number(statusOf(kind));
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

let owners;

/** The package of each function that a package has written itself. */
function ownersOfFunctions() {
  if (owners !== undefined) return owners;
  const all = [...documentedParts.keys()].flatMap((name) =>
    sourceFilesOf(name)
      .flatMap((file) => [...read(file).matchAll(/^export (?:async )?function (\w+)/gm)])
      .map(([, of]) => [of, name]),
  );
  owners = new Map(all);
  return owners;
}

/** The page of codes with what the packages say now, when each code is made to happen. */
export async function withExamples(page) {
  let text = page;
  for (const [code, provoke] of Object.entries(provocations)) {
    // One at a time: a line on stderr is the process's.
    const happened = await provoke();
    if (happened.code !== code) throw new Error(`${code}: what happened is ${happened.code}`);
    const example = new RegExp(
      String.raw`(?<=^### ${code}\n(?:(?!### ).*\n)*?\*\*Example\.\*\* .*\n\n)\`\`\`[\s\S]*?^\`\`\`$`,
      "m",
    );
    if (!example.test(text)) throw new Error(`${code} has no example on its page`);
    text = text.replace(example, () => exampleFence(happened.text));
  }
  return text;
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
