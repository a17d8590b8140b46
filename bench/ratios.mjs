// CPU time a request against the bare route by engine and Node, a refusal against a bare 401, and what a hostile header field costs.
import { readSignature } from "@countersign/http-message-signatures";
import { spawnSync } from "node:child_process";
import { serializeRequest } from "./load.mjs";
import { payoutTraffic, startServer, webhookTraffic } from "./servers.mjs";
import { createSigner, path } from "./signer.mjs";
import { median } from "./statistics.mjs";

const rounds = 9;
const warmUpRounds = 3;
const perRound = 2000;

/** `nodes` are paths of further Nodes. */
export async function cpuRatios({ nodes = [] }) {
  const results = [];
  for (const node of [process.execPath, ...nodes]) {
    const { stdout } = spawnSync(node, ["--version"], { encoding: "utf8" });
    // oxlint-disable-next-line no-await-in-loop -- nothing beside what is measured
    const measured = [...(await payoutRatios(node)), ...(await webhookRatios(node))];
    for (const { name, ...rest } of measured) results.push({ name: `${name}, ${stdout.trim()}`, ...rest });
  }
  return results;
}

function payoutRatios(node) {
  const sides = [
    { kind: "payoutSodium", name: "payout, sodium / bare, CPU", most: 1 },
    { kind: "payout", name: "payout, native / bare, CPU", most: 1.5 },
  ];
  const { kinds, ...traffic } = payoutTraffic();
  return ratiosOf(traffic, { base: kinds.bare, sides, node });
}

async function webhookRatios(node) {
  const { kinds, ...traffic } = webhookTraffic();
  const against = async (base, name, most) =>
    ratiosOf(traffic, { base, sides: [{ kind: "webhook", name: `webhook / ${name}, CPU`, most }], node });
  return [
    ...(await against("handwrittenWebhook", "written by hand", 1.4)),
    ...(await against(kinds.bare, "bare")),
  ];
}

/** Without `most` a side has no target. */
async function ratiosOf({ secrets, requests }, { base, sides, node }) {
  const kindsOf = [base, ...sides.map(({ kind }) => kind)];
  const servers = await Promise.all(kindsOf.map((kind) => startServer(kind, secrets, { node })));
  try {
    const found = servers.map(() => []);
    for (let round = -warmUpRounds; round < rounds; round++) {
      const sent = requests(perRound);
      const order = [...servers.keys()];
      for (const at of round % 2 === 0 ? order : order.toReversed()) {
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        const micros = await servers[at].cpuOf(sent);
        if (round >= 0) found[at].push(micros);
      }
    }
    const [bare, ...others] = found;
    return sides.map(({ name, most = Infinity }, at) => ({
      name: `${name} (${median(others[at]).toFixed(0)} / ${median(bare).toFixed(0)} us)`,
      ratio: median(others[at].map((micros, round) => micros / bare[round])),
      target: most === Infinity ? "reported" : `<= ${most.toFixed(2)}`,
      met: (ratio) => ratio <= most,
    }));
  } finally {
    for (const server of servers) server.close();
  }
}

/** Requests per second without a signature, against a route that answers 401 and looks at nothing. */
export async function refusalRatio() {
  const { secrets } = payoutTraffic();
  const kinds = ["bareRefusal", "payout"];
  const servers = await Promise.all(kinds.map((kind) => startServer(kind, secrets)));
  const unsigned = serializeRequest(path, { headers: { "content-type": "application/json" }, body: "{}" });
  const sent = Array.from({ length: perRound * 2 }, () => unsigned);
  try {
    const ratios = [];
    for (let round = -warmUpRounds; round < rounds; round++) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const [bare, refused] = [await servers[0].load(sent, 401), await servers[1].load(sent, 401)];
      if (round >= 0) ratios.push(refused / bare);
    }
    return {
      name: "refused unsigned request / bare 401",
      ratio: median(ratios),
      target: ">= 0.95",
      met: (ratio) => ratio >= 0.95,
    };
  } finally {
    for (const server of servers) server.close();
  }
}

const sixteenKilobytes = 16_384;
const hostile = {
  "an open inner list": (length) => `sig1=(${'"a" '.repeat(length / 4)}`,
  members: (length) => Array.from({ length: length / 10 }, (_, at) => `s${at}=()`).join(", "),
  parameters: (length) => `sig1=()${";a=1".repeat(length / 4)}`,
  "escapes in a string": (length) => `sig1=("${"\\\\".repeat(length / 2)}")`,
  "white space": (length) => `sig1=${" ".repeat(length)}()`,
  digits: (length) => `sig1=();created=${"1".repeat(length)}`,
};

/** The dearest Signature-Input of 16 kB, in milliseconds. */
export function hostileHeader() {
  const { headers } = createSigner().next();
  const profile = {
    requiredComponents: ["@method"],
    algorithms: ["ed25519"],
    windowSeconds: 60,
    clockSkewSeconds: 30,
  };
  const dearest = Object.values(hostile).map((make) => {
    const rawHeaders = [
      "Signature-Input",
      make(sixteenKilobytes).slice(0, sixteenKilobytes),
      "Signature",
      headers.signature,
    ];
    const took = Array.from({ length: 200 }, () => {
      const startedAt = performance.now();
      try {
        readSignature({ method: "POST", target: path, rawHeaders }, profile);
      } catch {
        return performance.now() - startedAt;
      }
      throw new Error("a hostile field was taken");
    });
    return median(took);
  });
  return {
    name: "Signature-Input of 16 kB, dearest, ms",
    ratio: Math.max(...dearest),
    target: "< 1",
    met: (ms) => ms < 1,
  };
}
