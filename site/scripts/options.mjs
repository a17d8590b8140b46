// A table of options as a page shows it, after `<!-- options: name -->`. A list in the mark itself says what doc comments do not.
import { sourceFilesOf } from "../../scripts/workspace.mjs";
import { optionTables } from "./option-tables.mjs";
import { read } from "./source.mjs";

const entry = /^- `(\w+)`: ([\s\S]*?)(?=\n- `|$(?![\s\S]))/gm;

/** The table `name`; a meaning in `list` counts more than a doc comment. */
export function optionTable(name, list = "") {
  const own = new Map([...list.matchAll(entry)].map(([, option, text]) => [option, oneLine(text)]));
  const { rules, types } = optionTables[name] ?? {};
  if (rules === undefined) throw new Error(`there is no table of options ${name}`);
  for (const option of own.keys()) if (!(option in rules)) throw new Error(`${name} has no option ${option}`);
  const required = Object.entries(rules).filter(([, { byDefault }]) => byDefault.startsWith("required"));
  const others = Object.entries(rules).filter(([, { byDefault }]) => !byDefault.startsWith("required"));
  const rows = [...required, ...others].map(([option, rule]) => {
    const meaning = own.get(option) ?? meaningOf(option, types, rule.byDefault);
    if (meaning === "") throw new Error(`no doc comment says what ${option} of ${name} means`);
    const cells = [`\`${option}\``, shownDefault(rule.byDefault), meaning + rangeOf(rule, meaning)];
    return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  });
  return ["| name | default | meaning |", "| --- | --- | --- |", ...rows].join("\n");
}

function meaningOf(option, types, byDefault) {
  const text = types.map((type) => commentsOf(type).get(option) ?? "").find((found) => found !== "") ?? "";
  const plain = text.replaceAll(/\{@link (\w+)\}/g, "`$1`");
  // The column has it.
  return plain.replaceAll(/( ?)\bDefault:? ([^.;]+)(?:\.(?= |$)|; (\w))/g, (sentence, space, told, next) => {
    if (bare(told) !== bare(byDefault)) return sentence;
    return next === undefined ? "" : `${space}${next.toUpperCase()}`;
  });
}

/** The range of an integer, as the rule itself says it when it refuses another value. */
function rangeOf({ read: readOption }, meaning) {
  try {
    readOption("no integer", "pages", "option");
  } catch (error) {
    const [, ...ends] = /an integer from (\d+) to (\d+)/.exec(error.message) ?? [];
    const range = ends.map(withMarks).join(" to ");
    if (ends.length === 2 && !meaning.includes(range)) return ` ${range}.`;
  }
  return "";
}

const withMarks = (number) => number.replaceAll(/\B(?=(?:\d{3})+$)/g, ",");

function bare(text) {
  const told = text.replaceAll(/[`"[\]]|(?<=\d)[, ](?=\d{3}|[km]?b)/gi, "").replace(/^(?:the|by) /, "");
  return told === "" ? "none" : told.toLowerCase();
}

const interfaces = new Map();

/** The doc comment of each member of a type: `package/Name`. */
function commentsOf(type) {
  const [name, wanted] = type.split("/");
  if (!interfaces.has(name)) interfaces.set(name, interfacesOf(name));
  const found = interfaces.get(name).get(wanted);
  if (found === undefined) throw new Error(`${name} has no interface ${wanted}`);
  return found;
}

function interfacesOf(name) {
  const all = sourceFilesOf(name).flatMap((file) => [
    ...read(file).matchAll(/^(?:export )?interface (\w+)[^{]*\{\n([\s\S]*?)^\}/gm),
  ]);
  return new Map(all.map(([, of, body]) => [of, membersOf(body)]));
}

function membersOf(body) {
  const members = body.matchAll(/^  \/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n  readonly (\w+)\??:/gm);
  return new Map([...members].map(([, text, member]) => [member, oneLine(text.replaceAll(/^\s*\*/gm, ""))]));
}

const oneLine = (text) => text.replaceAll(/\s+/g, " ").trim();

/** Words as they are, numbers with marks between thousands, all else as code. */
function shownDefault(byDefault) {
  if (/^\d+$/.test(byDefault)) return withMarks(byDefault);
  const isCode = /^(?:true|false|fetch|[[{"].*|\w+\.\w+)$/.test(byDefault);
  return isCode ? `\`${byDefault}\`` : byDefault;
}
