import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { createPublicKey, generateKeyPairSync, type JsonWebKey } from "node:crypto";
import { clearImmediate, setImmediate } from "node:timers";
import { noticeChannelName, type GuardNotice } from "@countersign/core";
import { servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";

export const serviceJwk: JsonWebKey = createPublicKey(servicePublicPem).export({ format: "jwk" });

/** A JWK Set whose keys are all the same one under other names: what is looked for is the keyid. */
export function setOf(...kids: string[]): { keys: JsonWebKey[] } {
  return { keys: kids.map((kid) => ({ ...serviceJwk, kid })) };
}

export function freshPem(): string {
  return generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "pem" }).toString();
}

/** An answer as a server of keys gives it. */
export function answer(document: unknown, headers: Record<string, string> = {}): Response {
  const body = typeof document === "string" ? document : JSON.stringify(document);
  return new Response(body, { headers: { "content-type": "application/jwk-set+json", ...headers } });
}

export function hearNotices(): { readonly heard: GuardNotice[]; readonly stop: () => void } {
  const heard: GuardNotice[] = [];
  const listener = (notice: unknown): void => void heard.push(notice as GuardNotice);
  subscribe(noticeChannelName, listener);
  return { heard, stop: () => void unsubscribe(noticeChannelName, listener) };
}

/** Runs `step` until it throws no more; the time-out of the test is its end. */
export async function eventually(step: () => void | Promise<void>): Promise<void> {
  const end = Date.now() + 30_000;
  for (;;) {
    try {
      await step();
      return;
    } catch (error) {
      if (Date.now() > end) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Keys of which each takes over a tenth of what may hold the event loop. */
export const largeSet = setOf(...Array.from({ length: 90 }, (_, index) => `key-${index}`));

/** Counts in how many turns of the event loop keys are asked for their validity. */
export function countTurns(): { readonly validity: () => undefined; readonly end: () => number } {
  const turns = new Set<number>();
  let turn = 0;
  let next = setImmediate(function count() {
    turn += 1;
    next = setImmediate(count);
  });
  return {
    validity: () => void turns.add(turn),
    end() {
      clearImmediate(next);
      return turns.size;
    },
  };
}
