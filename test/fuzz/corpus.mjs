import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

// Longer ones are made again from the seeds of a target: the repository keeps what somebody can read.
const longestKept = 400;

const fileOf = (name) => fileURLToPath(new URL(`corpus/${name}.txt`, import.meta.url));

/**
 * The kept inputs of a target: one JSON string a line, in which each character is a byte.
 * @returns {Buffer[]}
 */
export function readCorpus(name) {
  const file = fileOf(name);
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "");
  return lines.map((line) => Buffer.from(JSON.parse(line), "latin1"));
}

/** @param {readonly Buffer[]} inputs */
export function writeCorpus(name, inputs) {
  const lines = inputs.filter(({ length }) => length <= longestKept).map((input) => `${quote(input)}\n`);
  writeFileSync(fileOf(name), lines.join(""));
}

function quote(input) {
  return JSON.stringify(input.toString("latin1")).replace(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
