import { randomUUID } from "node:crypto";
import type {
  Database,
  IdempotencyStore,
  TransactionFault,
  TransactionStores,
} from "@countersign/idempotency";
import { afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { payerOn } from "./payer.ts";

/** Where a cluster meets a statement: one of a transaction, its COMMIT, or one that commits by itself. */
export type Place = "statement" | "COMMIT" | "lone statement";

export interface ArmedFault {
  readonly place: Place;
  readonly error: unknown;
  /** Whether it has taken effect all the same. */
  readonly hasEffect: boolean;
}

/** Throws an error of a cluster once, in place of the server or behind it. */
export class Faults {
  #armed: ArmedFault | undefined;

  arm(fault: ArmedFault): void {
    this.#armed = fault;
  }

  get isArmed(): boolean {
    return this.#armed !== undefined;
  }

  disarm(): void {
    this.#armed = undefined;
  }

  /** The fault that is to come here, if any; it comes once. */
  take(place: Place): ArmedFault | undefined {
    const armed = this.#armed;
    if (armed?.place !== place) return undefined;
    this.#armed = undefined;
    return armed;
  }

  async at<T>(place: Place, send: () => Promise<T>): Promise<T> {
    const armed = this.take(place);
    if (armed === undefined) return send();
    if (armed.hasEffect) await send();
    throw armed.error;
  }
}

export interface FaultyStores<Tx> extends TransactionStores<Tx> {
  readonly idempotency: IdempotencyStore;
  readonly handler: (tx: Tx, key: string) => Promise<unknown>;
  readonly countOf: (key: string) => Promise<number>;
}

/** `[as the engine shows it, what it is]`. */
export type FaultRow = readonly [name: string, error: unknown, fault: TransactionFault];

/** Every fault at every place of a payment, and of a step that commits by itself. */
export function describeFaults<Tx>(
  title: string,
  faults: Faults,
  rows: readonly FaultRow[],
  open: () => Promise<FaultyStores<Tx>>,
): void {
  describe(title, () => {
    let stores: FaultyStores<Tx>;
    let pay: (key: string) => Promise<unknown>;

    beforeAll(async () => {
      stores = await open();
      pay = payerOn(stores, stores.handler);
      // Checks the server and the library.
      expect(await pay(randomUUID())).toBe(200);
    });
    afterEach(() => faults.disarm());

    const conflicts = rows.filter(([, , fault]) => fault === "conflict");
    const unavailable = rows.filter(([, , fault]) => fault === "unavailable");
    const lease = { fingerprint: "f", leaseMs: 60_000, recovery: "hold" } as const;

    const places = ["statement", "COMMIT"] as const;
    describe.each(places)("at a %s", (place) => {
      test.each(conflicts)("%s: the payment runs again, and pays once", async (_name, error) => {
        const key = randomUUID();
        faults.arm({ place, error, hasEffect: false });
        expect(await pay(key)).toBe(200);
        expect(faults.isArmed).toBe(false);
        expect(await stores.countOf(key)).toBe(1);
        expect(await pay(key)).toBe("already-processed");
      });
    });

    test.each(unavailable)("at a statement, %s: 503, and the retry pays", async (_name, error) => {
      const key = randomUUID();
      faults.arm({ place: "statement", error, hasEffect: false });
      expect(await pay(key)).toBe("transaction-unavailable");
      expect(faults.isArmed).toBe(false);
      expect(await pay(key)).toBe(200);
      expect(await stores.countOf(key)).toBe(1);
    });

    describe.each([
      ["it has not taken effect", false, 200],
      ["it has taken effect", true, "already-processed"],
    ])("at a COMMIT, when %s", (_case, hasEffect, retried) => {
      test.each(unavailable)("%s: nobody says that it was rolled back", async (_name, error) => {
        const key = randomUUID();
        faults.arm({ place: "COMMIT", error, hasEffect });
        expect(await pay(key)).toBe("commit-unknown");
        expect(faults.isArmed).toBe(false);
        expect(await pay(key)).toBe(retried);
        expect(await stores.countOf(key)).toBe(1);
      });
    });

    const steps: [string, (key: string, token: string) => Promise<unknown>][] = [
      ["a claim", async (key, token) => (await stores.idempotency.claim(key, { ...lease, token })).status],
      ["a heartbeat", async (key, token) => stores.idempotency.heartbeat(key, token, 60_000)],
      ["a release", async (key, token) => stores.idempotency.release(key, token)],
      ["a completion", async (key, token) => stores.idempotency.complete(key, token)],
    ];
    describe.each(steps)("at %s, which commits by itself", (name, step) => {
      async function begun(): Promise<readonly [key: string, token: string]> {
        const [key, token] = [randomUUID(), randomUUID()];
        if (name !== "a claim") await stores.idempotency.claim(key, { ...lease, token });
        return [key, token];
      }
      const done = name === "a claim" ? "acquired" : "ok";

      test.each(conflicts)("%s: it is repeated", async (_name, error) => {
        const [key, token] = await begun();
        faults.arm({ place: "lone statement", error, hasEffect: false });
        expect(await step(key, token)).toBe(done);
        expect(faults.isArmed).toBe(false);
      });

      test.each(unavailable)("%s: it rejects, and can be sent again", async (_name, error) => {
        const [key, token] = await begun();
        faults.arm({ place: "lone statement", error, hasEffect: false });
        await expect(step(key, token)).rejects.toThrow();
        expect(faults.isArmed).toBe(false);
        expect(await step(key, token)).toBe(done);
      });
    });
  });
}

/**
 * A database whose statements go through `faults`. `isCommit` tells the texts by which the store commits itself; without it the library
 * commits.
 */
export function faultyDatabase<Tx>(
  database: Database<Tx>,
  faults: Faults,
  isCommit?: (text: string) => boolean,
): Database<Tx> {
  const placeOf = (text: string): Place => (isCommit?.(text) === true ? "COMMIT" : "statement");
  const { change, script } = database;
  return {
    ...database,
    run: isCommit === undefined ? (work) => runFaulty(database, faults, work) : (work) => database.run(work),
    query: (tx, text, values) => faults.at(placeOf(text), () => database.query(tx, text, values)),
    alone: (text, values) => faults.at("lone statement", () => database.alone(text, values)),
    ...(change && {
      change: (text, values, within) =>
        faults.at(within === undefined ? "lone statement" : placeOf(text), () =>
          change(text, values, within),
        ),
    }),
    ...(script && { script: (tx, text) => faults.at(placeOf(text), () => script(tx, text)) }),
  };
}

async function runFaulty<Tx, T>(
  database: Database<Tx>,
  faults: Faults,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  const lost: ArmedFault[] = [];
  const result = await database.run(async (tx) => {
    const done = await work(tx);
    const armed = faults.take("COMMIT");
    // In place of COMMIT: the library rolls back.
    if (armed?.hasEffect === false) throw armed.error;
    if (armed !== undefined) lost.push(armed);
    return done;
  });
  for (const { error } of lost) throw error;
  return result;
}
