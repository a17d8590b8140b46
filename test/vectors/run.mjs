// node test/vectors/run.mjs [engine ...]: every vector with every engine; the same with bun and deno by test/adapters/run-elsewhere.mjs.
import process from "node:process";
import { loadEngine } from "@countersign/http-message-signatures/internal";
import { faultsOf, readVectors } from "./check.mjs";

const runtime = process.versions.bun
  ? `Bun ${process.versions.bun}`
  : process.versions.deno
    ? `Deno ${process.versions.deno}`
    : `Node ${process.versions.node}`;
const asked = process.argv.slice(2);
const engines = asked.length > 0 ? asked : ["native", "noble", "sodium"];
let faulty = 0;
for (const engine of engines) {
  try {
    loadEngine(engine);
  } catch (error) {
    console.log(`${runtime}, ${engine}: left out, ${error.message}`);
    if (engine !== "sodium" || asked.length > 0) process.exitCode = 1;
    continue;
  }
  let [valid, refused] = [0, 0];
  for (const [name, { vectors }] of readVectors()) {
    for (const vector of vectors) {
      const faults = faultsOf(vector, engine);
      for (const fault of faults) console.error(`${name}, ${vector.id}: ${fault}`);
      if (faults.length > 0) faulty++;
      else if (vector.expected.verdict === "valid") valid++;
      else refused++;
    }
  }
  console.log(`${runtime}, ${engine}: ${valid} valid and ${refused} refused as expected`);
}
if (faulty > 0) {
  console.error(`${faulty} verdicts differ`);
  process.exitCode = 1;
}
