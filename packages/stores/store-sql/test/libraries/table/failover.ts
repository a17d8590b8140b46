import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { type describe, expect, test } from "@jest/globals";
import { payUntilDecided, payUntilLost, sorted } from "./payer.ts";

const timeoutMs = 120_000;

/** Stores of a process of its own on one of the two servers, beside a table of payouts. */
export interface Side {
  /** What an endpoint answers to a payment. */
  readonly pay: (key: string) => Promise<unknown>;
  readonly ready: () => Promise<void>;
  /** Sorted. */
  readonly paid: () => Promise<string[]>;
}

export interface Cluster {
  readonly first: Side;
  readonly second: Side;
  /** Ends the first server at once. */
  readonly kill: () => Promise<unknown>;
  /** From here on the second server gets nothing from the first. */
  readonly stopFollowing: () => Promise<unknown>;
  readonly promote: () => Promise<unknown>;
}

export interface FailoverKind {
  /** As titles call the second server, and one that COMMIT waits for. */
  readonly to: string;
  readonly synchronous: string;
  /** What the stores say of the second server before it is promoted. */
  readonly refusal: RegExp;
  /** Undefined where the servers are not installed. */
  readonly open: (isSynchronous: boolean) => Promise<Cluster | undefined>;
}

export function describeFailover(
  describeIt: typeof describe | typeof describe.skip,
  kind: FailoverKind,
): void {
  const { to, synchronous, refusal, open } = kind;

  function testOn(title: string, isSynchronous: boolean, run: (cluster: Cluster) => Promise<void>): void {
    const onCluster = async () => {
      const cluster = await open(isSynchronous);
      if (cluster !== undefined) await run(cluster);
    };
    test(title, onCluster, timeoutMs);
  }

  describeIt(`a failover to ${to}`, () => {
    testOn(
      `that is ${synchronous} forgets no payment that was answered, and pays none twice`,
      true,
      async ({ first, second, kill, promote }) => {
        const { keys, answered, lost } = payUntilLost(first.pay, 200);
        await eventually(() => answered.length >= 100);
        await kill();
        for (const answer of await lost) expect(answer).toMatch(/^(commit-unknown|transaction-unavailable)$/);
        await promote();
        const kept = await second.paid();
        expect(answered.filter((key) => !kept.includes(key))).toEqual([]);
        const retried = await Promise.all(keys.map((key) => payUntilDecided(second.pay, key)));
        const isKnown = (index: number): boolean => retried[index] === "already-processed";
        expect(sorted(keys.filter((_key, index) => isKnown(index)))).toEqual(kept);
        expect(await second.paid()).toEqual(sorted(keys));
      },
    );

    testOn(
      "that is asynchronous forgets the last payments with their keys: their retries pay there once",
      false,
      async ({ first, second, kill, stopFollowing, promote }) => {
        expect(await first.pay("early")).toBe(200);
        await eventually(async () => (await second.paid()).length === 1);
        await stopFollowing();
        expect(await first.pay("late")).toBe(200);
        await kill();
        await promote();
        expect(await second.paid()).toEqual(["early"]);
        expect(await second.pay("early")).toBe("already-processed");
        const retried = await Promise.all(["late", "late", "late"].map((key) => second.pay(key)));
        expect(sorted(retried)).toEqual([200, "already-processed", "already-processed"]);
        expect(await second.paid()).toEqual(["early", "late"]);
      },
    );

    testOn("is used by the stores that it had refused, once it is promoted", false, async (cluster) => {
      const { first, second, promote } = cluster;
      expect(await first.pay("early")).toBe(200);
      await eventually(async () => (await second.paid()).length === 1);
      await expect(second.ready()).rejects.toThrow(refusal);
      expect(await second.pay("early")).toBe("transaction-unavailable");
      expect(await second.pay("other")).toBe("transaction-unavailable");
      await promote();
      expect(await second.pay("early")).toBe("already-processed");
      expect(await second.pay("other")).toBe(200);
      expect(await second.paid()).toEqual(["early", "other"]);
    });
  });
}
