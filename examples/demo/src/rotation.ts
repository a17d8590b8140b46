import { renameSync, writeFileSync } from "node:fs";
import { generateKeyPair } from "@countersign/devtools/sandbox";
import { z } from "zod";
import { runCase, type CaseResult, type DemoTarget, type Report } from "./cases.ts";
import { resultOf } from "./webhook-cases.ts";

type SigningKeyPair = ReturnType<typeof generateKeyPair>;

const inspectedKeys = z.object({
  accepted: z.array(z.string()),
  used: z.array(z.object({ keyid: z.string(), count: z.number() })),
});
type InspectedKeys = z.infer<typeof inspectedKeys>;

const senders = 2;
const pollMs = 10;
const patienceMs = 10_000;
const payoutsByEachKey = 10;

/**
 * One key follows another while payouts arrive, without a restart: the new one is published beside the old one, the sender changes
 * over, and when the old one is idle it is taken out of `keysFile`. The key of `target` stays.
 */
export async function runRotation(target: DemoTarget, keysFile: string, report: Report): Promise<void> {
  const old = generateKeyPair({ keyid: "rotation-old" });
  const next = generateKeyPair({ keyid: "rotation-new" });
  const publish = async (...pairs: readonly SigningKeyPair[]): Promise<boolean> => {
    writeKeys(keysFile, [target.key, ...pairs]);
    const keyids = [target.key, ...pairs].map(({ keyid }) => keyid).join();
    return untilKeys(target, ({ accepted }) => accepted.join() === keyids);
  };
  const steps = [await publish(old)];
  const traffic = startTraffic(target, old);
  steps.push(await untilUsed(target, old), await publish(old, next));
  report(await pay(target, "the old key, both published", "200", old));
  report(await pay(target, "the new key, both published", "200", next));
  traffic.signBy(next);
  steps.push(await untilUsed(target, next), await publish(next), await untilUsed(target, next));
  const answers = await traffic.end();
  const refused = answers.filter((answer) => answer !== "200").length;
  const count = refused === 0 ? "0 refused" : `${refused} of ${answers.length} refused`;
  const got = steps.includes(false) ? "a step never happened" : count;
  report(resultOf("payouts during the rotation", "0 refused", got));
  report(await pay(target, "the old key, taken out", "401", old));
}

function pay(
  target: DemoTarget,
  name: string,
  expected: string,
  signer: SigningKeyPair,
): Promise<CaseResult> {
  return runCase(target, { name, expected, signer });
}

interface Traffic {
  /** From the next payout on. */
  signBy(signer: SigningKeyPair): void;
  /** Resolves with all answers when the last one is there. */
  end(): Promise<readonly string[]>;
}

function startTraffic(target: DemoTarget, first: SigningKeyPair): Traffic {
  let signer = first;
  const ending = new AbortController();
  const answers: string[] = [];
  const send = async (): Promise<void> => {
    while (!ending.signal.aborted) {
      // oxlint-disable-next-line no-await-in-loop -- one payout after the other
      const { got } = await pay(target, "traffic", "200", signer);
      answers.push(got);
    }
  };
  const sending = Promise.all(Array.from({ length: senders }, send));
  return {
    signBy(next) {
      signer = next;
    },
    async end() {
      ending.abort();
      await sending;
      return answers;
    },
  };
}

// At once, as an operator does: a reader sees the old file or the new one.
function writeKeys(file: string, pairs: readonly SigningKeyPair[]): void {
  const keys = Object.fromEntries(pairs.map(({ keyid, publicKeyPem }) => [keyid, publicKeyPem]));
  writeFileSync(`${file}.new`, `${JSON.stringify(keys, undefined, 2)}\n`);
  renameSync(`${file}.new`, file);
}

/** Until a key has been used some more times. */
async function untilUsed(target: DemoTarget, { keyid }: SigningKeyPair): Promise<boolean> {
  const countOf = ({ used }: InspectedKeys): number => used.find((key) => key.keyid === keyid)?.count ?? 0;
  const before = countOf(await inspect(target));
  return untilKeys(target, (keys) => countOf(keys) >= before + payoutsByEachKey);
}

/** Whether it has happened within ten seconds. */
async function untilKeys(target: DemoTarget, isEnough: (keys: InspectedKeys) => boolean): Promise<boolean> {
  const end = Date.now() + patienceMs;
  for (;;) {
    // oxlint-disable no-await-in-loop -- waits for what others do
    if (isEnough(await inspect(target))) return true;
    if (Date.now() > end) return false;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
    // oxlint-enable no-await-in-loop
  }
}

async function inspect({ url }: DemoTarget): Promise<InspectedKeys> {
  const response = await fetch(new URL("/inspect/keys", url));
  return inspectedKeys.parse(await response.json());
}
