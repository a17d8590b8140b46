// One round of a soak: processes of a platform on one store, load, what disturbs them, and what has to add up at the end.
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createRandom } from "../fuzz/random.mjs";
import { createClient } from "./client.mjs";
import { engines } from "./engines.mjs";
import { load, settle } from "./load.mjs";
import { startPlatform } from "./platform.mjs";
import { judge } from "./verdict.mjs";

/**
 * A round on an empty store at `url`, with a process for each of `modes`. `inspected` makes of the engine's inspection the one that is asked, whose
 * sessions begin with the statement `reads`. `close` undoes whatever there is of it, at any time.
 */
export function newRound({ engine, url, modes, seed, reads, inspected = (inspection) => inspection }) {
  const folder = mkdtempSync(path.join(tmpdir(), "soak-"));
  const random = createRandom(`load ${seed}`);
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const keyid = "soak-key";
  const publicKeyPem = publicKey.export({ type: "spki", format: "pem" });
  let platform;
  let inspection;
  let closing;
  return {
    /** Resolves to the location of the store. */
    async start() {
      const location = await engines[engine].prepare({ folder, url, isUnique: modes.includes("lease") });
      inspection = inspected(engines[engine].inspect({ ...location, session: reads }));
      const configs = modes.map((mode) => ({ engine, mode, location, keyid, publicKeyPem }));
      platform = await startPlatform(configs, folder);
      return location;
    },
    close() {
      closing ??= (async () => {
        await platform?.end();
        await inspection?.close();
        rmSync(folder, { recursive: true, force: true });
      })();
      return closing;
    },
    /** `disturb(platform, { count, random, goesOn })` resolves when everything runs again, to how often it has done what. */
    async run(loadSeconds, disturb) {
      const client = createClient({ platform, privateKey, keyid, random, inspection });
      const deadline = Date.now() + loadSeconds * 1_000;
      // Streams of their own: how fast the one is does not change what the other does.
      const [counts] = await Promise.all([
        disturb(platform, {
          count: modes.length,
          random: createRandom(`chaos ${seed}`),
          goesOn: () => Date.now() < deadline,
        }),
        load(client, random, deadline),
      ]);
      const startedAt = Date.now();
      const wedged = await settle(client);
      const settleMs = Date.now() - startedAt;
      const paidKeys = await inspection.paidKeys();
      const keys = client.allKeys();
      const passes = readPasses(folder);
      const faults = judge({ keys, paidKeys, wedged, answers: client.answers, passes });
      await platform.end();
      return { faults, keys, summary: summarize({ keys, paidKeys, passes, client, counts, settleMs }) };
    },
  };
}

function readPasses(folder) {
  return readdirSync(folder)
    .filter((file) => file.startsWith("passes-"))
    .flatMap((file) => readFileSync(path.join(folder, file), "utf8").split("\n"))
    .filter((line) => line !== "");
}

function summarize({ keys, paidKeys, passes, client, counts, settleMs }) {
  const { answers } = client;
  const statuses = [0, 200, 401, 409, 503].map((status) => {
    const count = answers.filter((answer) => answer.status === status).length;
    return `${count} ${status === 0 ? "unanswered" : `x ${status}`}`;
  });
  const runs = passes.filter((line) => /^(?:run|try) /.test(line)).map((line) => line.split(" ")[2]);
  const replays = answers.filter(({ kind }) => kind === "replay").length;
  const paidAt = answers.filter(({ status }) => status === 200).map(({ at }) => at);
  const pauses = paidAt.slice(1).map((at, index) => at - paidAt[index]);
  const disturbed = Object.entries(counts).map(([what, count]) => `${count} ${what}`);
  return (
    `${keys.length} keys, ${paidKeys.length} payouts, ${answers.length} requests (${statuses.join(", ")}), ` +
    `${runs.length - new Set(runs).size} runs of a handler behind one that was lost, ` +
    `${replays} replays, ${disturbed.join(", ")}, longest pause ${Math.max(0, ...pauses)} ms, settled in ${settleMs} ms`
  );
}
