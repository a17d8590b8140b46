import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { NonceStore } from "@countersign/core";
import type { Database, IdempotencyStore, TransactionStore } from "@countersign/idempotency";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";

type Changes = Partial<Database<object>>;

interface CheckedServer {
  /** The check's statements, as they were sent. */
  readonly asked: string[];
  readonly database: Database<object>;
}

interface CheckedStores {
  readonly ready: () => Promise<void>;
  readonly idempotency: Pick<IdempotencyStore, "claim">;
  readonly nonces: NonceStore;
  readonly transactions: Pick<TransactionStore<object, "async">, "run">;
}

interface ServerCheck<Settings> {
  readonly guard: string;
  /** Of a notice. */
  readonly code: string;
  /** How many the check sends. */
  readonly statements: number;
  /** A server that answers to the check, and to nothing else. Sound, but for these settings. */
  readonly serverWith: (settings: Settings) => CheckedServer;
  readonly storesOn: (database: Database<object>) => CheckedStores;
  readonly refused: readonly (readonly [what: string, settings: Settings, message: RegExp])[];
  readonly noticed: readonly (readonly [what: string, settings: Settings, message: RegExp])[];
  readonly inProduction: readonly [settings: Settings, message: RegExp];
}

const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "hold" } as const;
const use = { scope: "s", nonce: "n", token: "a", retainMs: 1_000 };

/** What ready() owes on each server that is asked for its settings before the first step. */
export function describeServerCheck<Settings extends object>(check: ServerCheck<Settings>): void {
  const sound = (): CheckedServer => check.serverWith({} as Settings);
  const soundBut = (changes: (sound: Database<object>) => Changes): CheckedStores => {
    const { database } = sound();
    return check.storesOn({ ...database, ...changes(database) });
  };
  const storesWith = (settings: Settings) => check.storesOn(check.serverWith(settings).database);

  describe("a line that never answers stops nobody for ever", () => {
    beforeEach(() => void jest.useFakeTimers());
    afterEach(() => void jest.useRealTimers());

    async function isLate(step: () => Promise<unknown>): Promise<void> {
      const late = expect(step()).rejects.toThrow("did not answer within 30000 ms");
      await jest.advanceTimersByTimeAsync(30_000);
      await late;
    }

    test("at the check of the server", async () => {
      const answers = [() => new Promise<never>(() => {})];
      const { ready } = soundBut(({ alone }) => ({
        alone: (...sent) => answers.shift()?.() ?? alone(...sent),
      }));
      await isLate(() => ready());
      expect(await ready()).toBeUndefined();
    });

    test("at the proof that a library's transactions are some", async () => {
      let runs = 0;
      const { transactions } = soundBut(() => ({
        run: () => (++runs === 1 ? new Promise(() => {}) : Promise.reject(new Error("asked again"))),
      }));
      await isLate(() => transactions.run(() => {}));
      await expect(transactions.run(() => {})).rejects.toThrow("asked again");
    });
  });

  describe("ready()", () => {
    const environment = process.env["NODE_ENV"];
    let notices: unknown[];
    const listener = (notice: unknown) => notices.push(notice);

    beforeEach(() => {
      notices = [];
      subscribe("countersign:notice", listener);
    });

    afterEach(() => {
      unsubscribe("countersign:notice", listener);
      process.env["NODE_ENV"] = environment;
    });

    test.each(check.refused)("rejects where the server %s, and so does the first step", async (...row) => {
      const [, settings, message] = row;
      const stores = storesWith(settings);
      await expect(stores.ready()).rejects.toThrow(message);
      await expect(stores.idempotency.claim("k", claim)).rejects.toThrow(message);
      await expect(stores.nonces.claim(use)).rejects.toThrow(message);
      await expect(stores.transactions.run(() => 1)).rejects.toThrow(message);
    });

    test.each(check.noticed)("publishes a notice, once, where %s", async (...row) => {
      const [, settings, message] = row;
      const { ready } = storesWith(settings);
      await ready();
      await ready();
      const { guard, code } = check;
      expect(notices).toEqual([{ guard, code, message: expect.stringMatching(message) }]);
    });

    test("rejects in production where what has committed can be lost, every time", async () => {
      process.env["NODE_ENV"] = "production";
      const [settings, message] = check.inProduction;
      const stores = storesWith(settings);
      await expect(stores.ready()).rejects.toThrow(message);
      await expect(stores.idempotency.claim("k", claim)).rejects.toThrow(message);
    });

    test("says nothing about a sound server, is asked once by many, and sends nothing before", async () => {
      const { asked, database } = sound();
      const { ready } = check.storesOn(database);
      expect(asked).toEqual([]);
      await Promise.all([ready(), ready(), ready()]);
      await ready();
      expect(asked).toHaveLength(check.statements);
      expect(notices).toEqual([]);
    });

    test("asks again after a check that failed", async () => {
      let isDown = true;
      const { ready } = soundBut(({ alone }) => ({
        alone: (...sent) => (isDown ? Promise.reject(new Error("down")) : alone(...sent)),
      }));
      await expect(Promise.all([ready(), ready()])).rejects.toThrow("down");
      isDown = false;
      await ready();
    });
  });
}
