import { describe, expect, test } from "@jest/globals";
import { importVerificationKey } from "@countersign/http-message-signatures";
import { servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";
import { identityOfDraft, isSigned, rightDraft, type Draft } from "../../dist/explain/draft.js";
import type { NearMiss } from "../../dist/explain/near-miss.js";
import { Pace } from "../../dist/explain/pace.js";
import { search } from "../../dist/explain/search.js";

/** A clock that work moves on, and the times at which others had their turn. */
function bench(): { pace: Pace; work: (ms: number) => void; turns: number[] } {
  let nowMs = 0;
  const turns: number[] = [];
  const turn = async (): Promise<void> => void turns.push(nowMs);
  return { pace: new Pace({ now: () => nowMs, turn }), work: (ms) => void (nowMs += ms), turns };
}

describe("Pace", () => {
  test("lets others have a turn before work begins, and when it has taken 5 ms", async () => {
    const { pace, work, turns } = bench();
    await pace.run(async () => {
      for (const ms of [4, 4, 4, 4, 9, 1, 10]) {
        work(ms);
        await pace.rest();
      }
    });
    expect(turns).toEqual([0, 8, 16, 25, 36]);
  });

  test("does one piece of work after the other, also behind one that fails", async () => {
    const { pace } = bench();
    const done: string[] = [];
    const piece = (name: string) => async (): Promise<string> => {
      done.push(`${name} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      done.push(`${name} ends`);
      if (name === "b") throw new Error("b");
      return name;
    };
    const all = await Promise.allSettled(["a", "b", "c"].map((name) => pace.run(piece(name))));
    expect(all.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(done).toEqual(["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]);
  });
});

describe("search", () => {
  test.each([
    ["Ed25519", 0.2],
    ["P-384", 4],
    ["a long body", 9],
  ])("keeps others waiting for less than 20 ms: %s, %d ms for each signature", async (_name, ms) => {
    const { pace, work, turns } = bench();
    const key = importVerificationKey("k", servicePublicPem);
    const verify = (): boolean => {
      work(ms);
      return false;
    };
    const right = {
      ...rightDraft('"@method": POST\n"@signature-params": ()', key, new Uint8Array(64)),
      verify,
    };
    const misses = Array.from({ length: 300 }, (_, index): NearMiss<Draft> => ({
      what: "miss",
      says: "",
      part: "tail",
      isUsual: false,
      change: (draft) => ({ ...draft, tail: String(index) }),
    }));
    const { attempts } = await pace.run(() =>
      search({ drafts: [right], misses, fits: isSigned, identityOf: identityOfDraft, pace }),
    );
    expect(attempts).toBe(301);
    const pauses = turns.map((at, index) => at - (turns[index - 1] ?? 0));
    expect(Math.max(...pauses, attempts * ms - (turns.at(-1) ?? 0))).toBeLessThan(20);
    expect(turns.length).toBeGreaterThan((attempts * ms) / 20);
  });
});
