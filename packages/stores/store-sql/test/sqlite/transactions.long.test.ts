import { expect, test } from "@jest/globals";
import { connect } from "./connections.ts";
import { failureOf, insert, platform } from "./payments.ts";

test("run() rejects when another connection keeps the write lock for five seconds", async () => {
  const { file, transactions, paid } = platform();
  const other = connect(file);
  other.exec("BEGIN IMMEDIATE");
  const error = await failureOf(transactions.run((tx) => insert(tx, "a")));
  other.exec("ROLLBACK");
  expect(transactions.faultOf(error)).toBe("locked");
  expect(String(error)).toMatch(/write lock for 5000 ms/);
  expect(paid()).toEqual([]);
});
