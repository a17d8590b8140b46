import { fromPg } from "@countersign/databases";
import { describe, expect, test } from "@jest/globals";
import { afterTest, pause } from "@countersign/test-support/runs/after-test.ts";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { connectPool, untilBlocked } from "./connections.ts";
import { type Payouts, claimOf, keyOf, libraries, newPayouts, nonceOf, payIn, refuseIn } from "./payouts.ts";

const nothing = (): Promise<void> => Promise.resolve();

/** A payment that stays open until it is told to end. */
async function openPayment({ transactions, write }: Payouts, name: string, isRefused = false) {
  let end = (): void => {};
  const told = new Promise<void>((resolve) => (end = resolve));
  const key = keyOf(name);
  const claim = claimOf([key], { nonce: nonceOf(`n of ${name}`) });
  let begun = (): void => {};
  const hasBegun = new Promise<void>((resolve) => (begun = resolve));
  const pay = isRefused ? refuseIn : payIn;
  const ended = pay(transactions, claim, async (tx) => {
    await write(tx, name);
    begun();
    await told;
  });
  await hasBegun;
  const settle = async (): Promise<void> => {
    end();
    await ended;
  };
  afterTest(settle);
  return { key, claim, settle };
}

describeOnPostgres("a payment beside one that is open", () => {
  describe.each(libraries)("with %s", (_library, as) => {
    const setUp = () => newPayouts({ database: as(fromPg(connectPool({ max: 20 }))) });

    test.each([
      ["commits", false],
      ["is refused", true],
    ])(
      "waits for the payment that has its nonce, and never gets in when that %s",
      async (_case, isRefused) => {
        const payouts = await setUp();
        const { transactions, pool, schema, paid, write, idempotency } = payouts;
        const { claim, settle } = await openPayment(payouts, "first", isRefused);
        const replays = Array.from({ length: 5 }, (_, index) =>
          payIn(
            transactions,
            {
              ...claim,
              keys: [keyOf(`other ${index}`)],
              nonce: { ...claim.nonce!, token: `replay ${index}` },
            },
            (tx) => write(tx, "replay"),
          ),
        );
        await untilBlocked(pool, schema);
        await settle();
        for (const replay of replays) {
          // oxlint-disable-next-line no-await-in-loop -- all run already
          expect(await replay).toEqual({ nonce: "seen", keys: [] });
        }
        expect(await paid()).toEqual(isRefused ? [] : ["first"]);
        expect(await idempotency.read("other 0")).toBeUndefined();
      },
    );

    test("waits for the payment of its key: done when that commits", async () => {
      const payouts = await setUp();
      const { settle } = await openPayment(payouts, "k");
      const second = payIn(payouts.transactions, claimOf([keyOf("k")]), (tx) => payouts.write(tx, "second"));
      await untilBlocked(payouts.pool, payouts.schema);
      await settle();
      expect((await second).keys).toEqual([{ status: "done", fingerprint: "f of k" }]);
      expect(await payouts.paid()).toEqual(["k"]);
    });

    test.each<[string, (payouts: Payouts) => Promise<unknown>]>([
      ["was freed", ({ transactions }) => refuseIn(transactions, claimOf([keyOf("k")]), nothing)],
      [
        "is an expired run",
        async ({ idempotency }) => {
          await idempotency.claim("k", { token: "a", fingerprint: "f", leaseMs: 1, recovery: "hold" });
          await pause(5);
        },
      ],
    ])(
      "waits for the payment that takes over its key, which %s: done when that commits",
      async (_case, make) => {
        const payouts = await setUp();
        await make(payouts);
        const { settle } = await openPayment(payouts, "k");
        const others = [1, 2].map(() =>
          payIn(payouts.transactions, claimOf([keyOf("k")]), (tx) => payouts.write(tx, "second")),
        );
        await untilBlocked(payouts.pool, payouts.schema);
        await settle();
        const answers = await Promise.all(others);
        expect(answers.map(({ keys }) => keys)).toEqual(
          answers.map(() => [{ status: "done", fingerprint: "f of k" }]),
        );
        expect(await payouts.paid()).toEqual(["k"]);
      },
    );

    test("waits with keys in order: none behind the one that it waits for is taken", async () => {
      const payouts = await setUp();
      const { transactions, pool, schema } = payouts;
      const { settle } = await openPayment(payouts, "b");
      const waiting = payIn(transactions, claimOf(["c", "b", "a"].map(keyOf)), nothing);
      await untilBlocked(pool, schema);
      const [c, a] = await Promise.allSettled([
        payIn(transactions, claimOf([keyOf("c")]), nothing),
        payIn(transactions, claimOf([keyOf("a")], { waitMs: 50 }), nothing),
      ]);
      expect(c).toMatchObject({ status: "fulfilled", value: { keys: [{ status: "begun" }] } });
      expect(a.status).toBe("rejected");
      await settle();
      expect((await waiting).keys.map(({ status }) => status)).toEqual(["done", "done", "begun"]);
    });

    test("waits for the payment of its key: paid when that is refused", async () => {
      const payouts = await setUp();
      const { settle } = await openPayment(payouts, "k", true);
      const second = payIn(payouts.transactions, claimOf([keyOf("k")]), (tx) => payouts.write(tx, "second"));
      await untilBlocked(payouts.pool, payouts.schema);
      await settle();
      expect((await second).keys).toEqual([{ status: "begun" }]);
      expect(await payouts.paid()).toEqual(["second"]);
    });

    test("waits for the payment of its key: paid when that rolls back", async () => {
      const payouts = await setUp();
      const { transactions, pool, schema, write, paid, nonces } = payouts;
      let fail = (): void => {};
      const told = new Promise<never>((_resolve, reject) => (fail = () => reject(new Error("no line"))));
      let begun = (): void => {};
      const hasBegun = new Promise<void>((resolve) => (begun = resolve));
      const nonce = nonceOf("n");
      const first = payIn(transactions, claimOf([keyOf("k")], { nonce }), async (tx) => {
        await write(tx, "first");
        begun();
        await told;
      });
      await hasBegun;
      const second = payIn(transactions, claimOf([keyOf("k")]), (tx) => write(tx, "second"));
      await untilBlocked(pool, schema);
      fail();
      await expect(first).rejects.toThrow("no line");
      expect((await second).keys).toEqual([{ status: "begun" }]);
      expect(await paid()).toEqual(["second"]);
      expect(await nonces.claim({ ...nonce, token: "other" })).toBe("fresh");
    });

    test("waits for the payment of its key no longer than it may, and leaves nothing", async () => {
      const payouts = await setUp();
      const { transactions, nonces } = payouts;
      await openPayment(payouts, "k");
      const nonce = nonceOf("n");
      const second = payIn(transactions, claimOf([keyOf("k")], { nonce, waitMs: 50 }), nothing);
      const error: unknown = await second.catch((thrown: unknown) => thrown);
      expect(transactions.faultOf(error)).toBe("locked");
      expect(await nonces.claim({ ...nonce, token: "other" })).toBe("fresh");
    });
  });
});
