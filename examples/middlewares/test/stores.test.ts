// The example's own stores keep what the interfaces ask for.
import { randomUUID } from "node:crypto";
import path from "node:path";
import { afterTest, testClock, testFolder } from "@countersign/test-support/runs/after-test.ts";
import { servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";
import { defineCases, nonceStoreContract } from "@countersign/store-contract";
import { describe, expect, test } from "@jest/globals";
import Database from "libsql";
import { tableOfKeys, tableOfNonces } from "../dist/stores.js";

function makeStore() {
  const file = path.join(testFolder(), "nonces.db");
  const clock = testClock();
  const opened: Database.Database[] = [];
  const open = () => {
    const database = new Database(file);
    opened.push(database);
    return tableOfNonces(database, clock.now);
  };
  const store = open();
  return {
    store,
    advance: (ms: number) => clock.advance(ms),
    another: open,
    fill() {
      const database = opened[0]!;
      // Each size takes what room the larger one has left.
      database.exec("PRAGMA max_page_count = 16");
      for (const size of [128, 32, 1]) {
        try {
          for (;;) {
            const nonce = `${randomUUID()}${"x".repeat(size)}`;
            store.claim({ scope: "ballast", nonce, token: "t", retainMs: 3_600_000 });
          }
        } catch (error) {
          expect(String(error)).toMatch(/full/);
        }
      }
    },
    close() {
      for (const database of opened.splice(0)) database.close();
    },
  };
}

defineCases(nonceStoreContract(makeStore, { without: ["engine", "durability", "prune", "close"] }), {
  title: "the table of nonces",
  describe,
  test: Object.assign(test.bind(undefined), { skip: () => {} }),
});

test("the table of nonces keeps a nonce in its last millisecond, and no longer", () => {
  const database = new Database(":memory:");
  afterTest(() => database.close());
  const { now, advance } = testClock();
  const store = tableOfNonces(database, now);
  const claim = (token: string): unknown =>
    store.claim({ scope: "service-1", nonce: "n-1", token, retainMs: 150_000 });
  expect(claim("first")).toBe("fresh");
  advance(150_000);
  expect(claim("second")).toBe("seen");
  advance(1);
  expect(claim("second")).toBe("fresh");
});

test("the table of keys knows a key from its row on, and not after the row has gone", () => {
  const database = new Database(":memory:");
  afterTest(() => database.close());
  const keys = tableOfKeys(database);
  expect(keys.get("service-1")).toBeUndefined();
  const insert = database.prepare("INSERT INTO keys VALUES (?, ?)");
  insert.run("service-1", servicePublicPem);
  expect(keys.get("service-1")).toMatchObject({ keyid: "service-1", alg: "ed25519" });
  expect(keys.get("service-1")).toBe(keys.get("service-1"));
  database.exec("DELETE FROM keys");
  expect(keys.get("service-1")).toBeUndefined();
  insert.run("weak", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
  expect(() => keys.get("weak")).toThrow();
});
