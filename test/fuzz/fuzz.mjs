// npm run fuzz [-- target...] [--seconds N] [--runs N] [--seed S] [--input FILE] [--save]: see README.md.
import { createHash, randomInt } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { readCorpus, writeCorpus } from "./corpus.mjs";
import { fuzzWatched } from "./watched.mjs";

const targetsFolder = new URL("targets/", import.meta.url);
const everyTarget = readdirSync(targetsFolder)
  .filter((file) => file.endsWith(".mjs"))
  .map((file) => file.slice(0, -".mjs".length));

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: "string", default: "60" },
    runs: { type: "string", default: "Infinity" },
    seed: { type: "string", default: String(randomInt(1_000_000_000)) },
    input: { type: "string" },
    failures: { type: "string", default: fileURLToPath(new URL("failures/", import.meta.url)) },
    save: { type: "boolean", default: false },
  },
});

const names = positionals.length === 0 ? everyTarget : positionals;
const unknown = names.find((name) => !everyTarget.includes(name) && !name.endsWith(".mjs"));
const [seconds, runs] = [readLimit("seconds"), readLimit("runs")];
if (unknown !== undefined) exit(`fuzz: no target ${unknown}; there are ${everyTarget.join(", ")}`);
if (values.input !== undefined && names.length !== 1)
  exit("fuzz: --input needs the one target that it is for");

console.log(`seed ${values.seed}`);
for (const name of names) {
  const { report, finding } = await fuzzWatched({
    url: urlOf(name),
    corpus: values.input === undefined ? readCorpus(name) : [readFileSync(values.input)],
    seed: `${values.seed}:${name}`,
    seconds: seconds / names.length,
    runs: values.input === undefined ? runs : 0,
  });
  if (finding !== undefined) exit(describeFinding(name, finding));
  console.log(describeReport(name, report));
  if (values.save)
    writeCorpus(
      name,
      report.corpus.map((bytes) => Buffer.from(bytes)),
    );
}

function urlOf(name) {
  return name.endsWith(".mjs") ? pathToFileURL(name).href : new URL(`${name}.mjs`, targetsFolder).href;
}

function readLimit(option) {
  const limit = Number(values[option]);
  if (!(limit >= 0)) exit(`fuzz: --${option} must be a number, got ${values[option]}`);
  return limit;
}

function describeReport(name, report) {
  const { executed, inputs, corpus, fromCorpus, outcomes, functions, characters, reached } = report;
  const share = characters === 0 ? 0 : Math.round((100 * reached) / characters);
  return (
    `${name}: ${executed} runs (${inputs}) in ${report.seconds.toFixed(1)} s, corpus ${fromCorpus} + ${corpus.length - fromCorpus} new, ` +
    `${outcomes} outcomes, ${functions} functions entered and ${share} % of their text`
  );
}

function describeFinding(name, { input, what }) {
  const bytes = Buffer.from(input);
  const sum = createHash("sha256").update(bytes).digest("hex").slice(0, 12);
  const file = join(values.failures, `${name.replace(/\W+/g, "-")}-${sum}`);
  mkdirSync(values.failures, { recursive: true });
  writeFileSync(file, bytes);
  return [
    `${name}: broken with seed ${values.seed} by ${bytes.length} bytes, kept in ${file}`,
    `base64: ${bytes.toString("base64")}`,
    what,
    `again: npm run fuzz -- ${name} --input ${file}`,
  ].join("\n");
}

function exit(message) {
  console.error(message);
  process.exit(1);
}
