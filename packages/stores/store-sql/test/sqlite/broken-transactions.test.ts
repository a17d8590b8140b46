import { describe, expect, test } from "@jest/globals";
import { type Connection, connect, openStores, drivers } from "./connections.ts";
import { claimOf, failureOf, insert, key, pastGate, platform } from "./payments.ts";

const held = { state: "held", reason: "transaction-broken", token: key.token };
const done = { state: "done", token: key.token };

describe.each(drivers)("a handler that ends its transaction, %s", (_driver, open) => {
  const end: Readonly<Record<string, (tx: Connection) => void>> = {
    "its own COMMIT": (tx) => pastGate(tx, "COMMIT"),
    "its own ROLLBACK": (tx) => pastGate(tx, "ROLLBACK"),
    "its own ROLLBACK and BEGIN": (tx) => pastGate(tx, "ROLLBACK; BEGIN"),
    "its own COMMIT and BEGIN": (tx) => pastGate(tx, "COMMIT; BEGIN"),
    "a swallowed ON CONFLICT ROLLBACK": (tx) => expect(() => insert(tx, "before")).toThrow(/UNIQUE/),
    "RELEASE of our savepoint": (tx) => pastGate(tx, "RELEASE countersign"),
  };

  test.each([
    ["its own COMMIT", "keep", held, ["after", "before"]],
    ["its own COMMIT", "assertOpen", held, ["after", "before"]],
    ["its own COMMIT and BEGIN", "keep", held, ["before"]],
    ["its own ROLLBACK", "keep", held, ["after"]],
    ["its own ROLLBACK", "assertOpen", held, ["after"]],
    ["its own ROLLBACK and BEGIN", "keep", held, []],
    ["a swallowed ON CONFLICT ROLLBACK", "keep", held, ["after"]],
    ["a swallowed ON CONFLICT ROLLBACK", "assertOpen", held, ["after"]],
    ["RELEASE of our savepoint", "keep", held, []],
  ] as const)("by %s is told at %s", async (how, step, record, rows) => {
    const { transactions, idempotency, paid } = platform(open);
    const error = await failureOf(
      transactions.run((tx) => {
        void transactions.begin(tx, claimOf(key));
        insert(tx, "before");
        end[how]?.(tx);
        insert(tx, "after");
        void transactions[step](tx, [key], false);
      }),
    );
    expect(error).toMatchObject({ code: "transaction-broken", status: 500 });
    expect(transactions.faultOf(error)).toBeUndefined();
    expect(idempotency.read(key.key)).toMatchObject(record);
    expect(paid()).toEqual(rows);
  });

  test("changes nothing more when its handler fails after that", async () => {
    const { transactions, idempotency } = platform(open);
    await transactions
      .run((tx) => {
        void transactions.begin(tx, claimOf(key));
        pastGate(tx, "COMMIT");
        try {
          void transactions.keep(tx, [key], false);
        } finally {
          void transactions.assertOpen(tx, [key]);
        }
      })
      .catch(() => {});
    expect(idempotency.read(key.key)).toMatchObject(held);
    const next = { ...key, key: "next" };
    await transactions.run((tx) => {
      void transactions.begin(tx, claimOf(next));
      void transactions.keep(tx, [next], false);
    });
    expect(idempotency.read("next")).toMatchObject(done);
  });

  test.each([
    ["paid", "done", { state: "done", token: "theirs" }],
    ["begun", "running", { state: "held", reason: "transaction-broken", token: "theirs" }],
    ["had held", "held", { state: "held", reason: "in doubt", token: "theirs" }],
  ] as const)("leaves the key to another process that has %s it meanwhile", async (_case, state, record) => {
    const { file, transactions, idempotency } = platform(open);
    const other = openStores(connect(file, open)).idempotency;
    await failureOf(
      transactions.run((tx) => {
        void transactions.begin(tx, claimOf(key));
        pastGate(tx, "ROLLBACK");
        other.claim(key.key, { token: "theirs", fingerprint: "f", leaseMs: 60_000, recovery: "hold" });
        if (state === "done") other.complete(key.key, "theirs");
        if (state === "held") other.hold(key.key, "theirs", "in doubt");
        void transactions.keep(tx, [key], false);
      }),
    );
    expect(idempotency.read(key.key)).toMatchObject(record);
    if (state === "running") expect(other.complete(key.key, "theirs")).toBe("ok");
  });

  test("is told with both errors when the key cannot be held", async () => {
    const { file, database, transactions, idempotency } = platform(open);
    const other = connect(file, open);
    database.exec("PRAGMA busy_timeout = 0");
    const error = await failureOf(
      transactions.run((tx) => {
        void transactions.begin(tx, claimOf(key));
        pastGate(tx, "ROLLBACK");
        other.exec("BEGIN IMMEDIATE");
        void transactions.keep(tx, [key], false);
      }),
    );
    other.exec("ROLLBACK");
    expect(error).toMatchObject({ code: "transaction-broken", cause: expect.any(AggregateError) });
    // The lock of the other one is no reason to run the handler again.
    expect(transactions.faultOf(error)).toBeUndefined();
    expect(idempotency.read(key.key)).toBeUndefined();
  });

  test.each([
    ["of one key is held for that key alone", true, [undefined, held, undefined]],
    ["of an unknown key is held for all that are open", false, [undefined, held, held]],
    ["of one key, behind its own COMMIT, is held for that key alone", "COMMIT", [done, held, undefined]],
  ] as const)("by a promise %s", async (_title, named, records) => {
    const { transactions, idempotency } = platform(open);
    const keys = ["kept", "broken", "unseen"].map((text) => ({ ...key, key: text }));
    const error = await failureOf(
      transactions.run(async (tx) => {
        void transactions.begin(tx, claimOf(...(keys as [typeof key])));
        void transactions.keep(tx, keys.slice(0, 1), true);
        if (named === "COMMIT") pastGate(tx, "COMMIT");
        if (named !== false) transactions.outlived?.(tx, keys.slice(1, 2));
      }),
    );
    expect(error).toBeInstanceOf(TypeError);
    expect(keys.map(({ key: text }) => idempotency.read(text))).toEqual(
      records.map((record) => record && expect.objectContaining(record)),
    );
    // The next transaction holds what it is told itself.
    const next = { ...key, key: "next" };
    await failureOf(transactions.run(async (tx) => void transactions.begin(tx, claimOf(next))));
    expect(idempotency.read("next")).toMatchObject(held);
  });

  test("with its own COMMIT leaves keys free that no handler has seen", async () => {
    const { transactions, idempotency } = platform(open);
    const [kept, broken, unseen] = ["kept", "broken", "unseen"].map((text) => ({ ...key, key: text }));
    await failureOf(
      transactions.run((tx) => {
        void transactions.begin(tx, claimOf(kept ?? key, broken ?? key, unseen ?? key));
        void transactions.keep(tx, [kept ?? key], true);
        pastGate(tx, "COMMIT");
        void transactions.keep(tx, [broken ?? key], true);
      }),
    );
    expect(idempotency.read("kept")).toMatchObject(done);
    expect(idempotency.read("broken")).toMatchObject(held);
    expect(idempotency.read("unseen")).toBeUndefined();
  });
});
