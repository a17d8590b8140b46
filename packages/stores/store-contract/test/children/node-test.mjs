// A test file of node:test, as a user of the kit writes it. With STORE_IS_WRONG=1 the store is wrong.
import { describe, test } from "node:test";
import process from "node:process";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { defineCases, idempotencyStoreContract } from "@countersign/store-contract";

const isWrong = process.env.STORE_IS_WRONG === "1";

function makeStore() {
  let nowMs = 1_800_000_000_000;
  const store = memoryIdempotencyStore({ now: () => nowMs });
  if (isWrong) store.release = () => "ok";
  return { store, advance: (ms) => void (nowMs += ms), close: () => store.close() };
}

const without = ["another", "fill", "engine", "durability", "transaction"];
defineCases(idempotencyStoreContract(makeStore, { without }), { describe, test, title: "my store" });
