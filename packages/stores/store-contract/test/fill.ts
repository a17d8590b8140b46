// Leaves an engine with a limit no room.
import { randomInt } from "node:crypto";
import type { NonceStore } from "@countersign/core";
import type { AnswerStore, IdempotencyStore } from "@countersign/idempotency";

export async function fillKeys(store: IdempotencyStore): Promise<void> {
  const claim = { token: "t", fingerprint: "f", leaseMs: 1_000_000, recovery: "hold" } as const;
  await untilRefused((text) => store.claim(text, claim));
}

export async function fillNonces(store: NonceStore): Promise<void> {
  const use = { nonce: "n", token: "t", retainMs: 1_000_000 };
  await untilRefused((text) => store.claim({ ...use, scope: text }));
}

export async function fillAnswers(store: AnswerStore): Promise<void> {
  await untilRefused((text) => store.keep(text, Buffer.from(text)));
}

// Long texts first, then such that are shorter than those of any case and lie between all of them: every page is full.
async function untilRefused(claim: (text: string) => unknown): Promise<void> {
  for (const length of [500, 50, 3]) {
    let refused = 0;
    for (let count = 0; refused < 300; count += 1) {
      if (count > 20_000) throw new Error("the store does not become full");
      try {
        await claim(Array.from({ length }, () => String.fromCharCode(randomInt(32, 127))).join(""));
      } catch {
        refused += 1;
      }
    }
  }
}
