import { describe, expect, test } from "@jest/globals";
import { connect, drivers, openStores, temporaryFile } from "./connections.ts";
import { claimOf } from "./payments.ts";

const lease = { token: "mine", fingerprint: "f", leaseMs: 60_000, recovery: "hold" } as const;
// Not toThrow(): better-sqlite3 has one class of errors for all test files of a process, which jest takes for no error in the second.
const refused = { message: expect.stringMatching(/refused/) };

// libsql's get() executes a statement that has failed once more with the values that have failed.
describe.each(drivers)("a statement that has failed, %s", (_driver, open) => {
  function refusing(table: string, condition: string) {
    const database = connect(temporaryFile(), open);
    const stores = openStores(database);
    database.exec(
      `CREATE TRIGGER refuses BEFORE INSERT ON countersign_${table} WHEN ${condition} BEGIN SELECT RAISE(ABORT, 'refused'); END`,
    );
    return { ...stores, allow: () => database.exec("DROP TRIGGER refuses") };
  }

  test("leaves its key to no later claim", () => {
    const { idempotency, allow } = refusing("idempotency", "new.key = 'first'");
    expect(() => idempotency.claim("first", lease)).toThrow(/refused/);
    allow();
    expect(idempotency.claim("second", lease)).toMatchObject({ status: "acquired" });
    expect([idempotency.read("first"), idempotency.read("second")?.state]).toEqual([undefined, "running"]);
  });

  test("leaves its nonce to no later claim", () => {
    const { nonces, allow } = refusing("nonces", "new.nonce = 'first'");
    const use = { scope: "s", token: "t", retainMs: 60_000 };
    expect(() => nonces.claim({ ...use, nonce: "first" })).toThrow(/refused/);
    allow();
    expect(nonces.claim({ ...use, nonce: "second" })).toBe("fresh");
    expect(nonces.claim({ ...use, nonce: "second", token: "u" })).toBe("seen");
    expect(nonces.claim({ ...use, nonce: "first", token: "u" })).toBe("fresh");
  });

  test("leaves its key to no later transaction", async () => {
    const { transactions, idempotency, allow } = refusing("idempotency", "new.key = 'first'");
    const pay = (key: string) =>
      transactions.run((tx) => {
        const own = { key, token: key, fingerprint: "f" };
        void transactions.begin(tx, claimOf(own));
        void transactions.keep(tx, [own], false);
      });
    await expect(pay("first")).rejects.toMatchObject(refused);
    allow();
    await pay("second");
    expect([idempotency.read("first"), idempotency.read("second")?.state]).toEqual([undefined, "done"]);
  });

  test("leaves its task to no later one", async () => {
    const { transactions, work, allow } = refusing("tasks", "new.body = 'first'");
    const add = (id: string) =>
      transactions.run((tx) => {
        void work.add(tx, "q", [{ id, body: id }]);
      });
    await expect(add("first")).rejects.toMatchObject(refused);
    allow();
    await add("second");
    expect((await work.list({ queue: "q", limit: 9 })).tasks.map(({ id }) => id)).toEqual(["second"]);
  });
});
