import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "@jest/globals";
import { usualTimes } from "./payer-app.mjs";
import { pay, type PayoutAnswer, type Target } from "./payers.ts";

export const { leaseMs } = usualTimes;

/** Retries as the service does, only faster, until the answer is not 503. Returns all answers. */
export async function payUntilDecided(
  payer: Target,
  key: string,
  { withinMs = 10_000 }: { readonly withinMs?: number } = {},
): Promise<PayoutAnswer[]> {
  const answers: PayoutAnswer[] = [];
  for (const end = performance.now() + withinMs; ; await sleep(25)) {
    const answer = await pay(payer, key);
    answers.push(answer);
    if (answer.status !== 503) return answers;
    if (performance.now() > end) throw new Error(`still 503 (${String(answer.code)}) after ${withinMs} ms`);
  }
}

/** Expects refusals until the lease ends, then one 2xx; then 409. */
export async function expectOnePaymentAfterLease(
  payer: { readonly port: number },
  key: string,
  since: number,
) {
  const answers = await payUntilDecided(payer, key);
  const waitedMs = performance.now() - since;
  expect(answers.length).toBeGreaterThan(1);
  expect(answers.slice(0, -1).every(({ status, retryAfter }) => status === 503 && retryAfter === "1")).toBe(
    true,
  );
  expect(answers.at(-1)?.status).toBe(200);
  // The claim came a little before what the test could see.
  expect(waitedMs).toBeGreaterThan(leaseMs * 0.7);
  expect(await pay(payer, key)).toMatchObject({ status: 409, code: "already-processed" });
}

/** Expects every payer to refuse the key as in flight, again and again. */
export async function expectRefusedFor(
  payers: readonly { readonly port: number }[],
  key: string,
  durationMs: number,
): Promise<void> {
  for (const end = performance.now() + durationMs; performance.now() < end; await sleep(100)) {
    const answers = await Promise.all(payers.map((payer) => pay(payer, key)));
    for (const answer of answers) expect(answer).toMatchObject({ status: 503, code: "in-flight" });
  }
}
