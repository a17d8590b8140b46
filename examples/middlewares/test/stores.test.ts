// The example's own stores keep what the interfaces ask for.
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
    // No test here is about a loss of power.
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF");
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
      // Until none of many finds a place, wherever it stands in an index.
      database.exec("PRAGMA max_page_count = 8");
      for (let count = 0, refused = 0; refused < 500; count += 1) {
        const claim = { scope: String.fromCodePoint(33 + (count % 94)), nonce: `${count}`, token: "" };
        try {
          void store.claim({ ...claim, retainMs: 3_600_000 });
          refused = 0;
        } catch (error) {
          expect(String(error)).toMatch(/full/);
          refused += 1;
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
