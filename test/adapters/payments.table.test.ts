// The state table of a payment in one transaction, on SQLite: all of it at Express 5, and at every other adapter what adapters may do with it, in
// a usual run its core. payments-on-servers.test.ts and payments.long.test.ts have the servers.
import { expect, test } from "@jest/globals";
import express4 from "express4";
import express5 from "express";
import { expressAdapter } from "./express-adapter.ts";
import { fastifyAdapter } from "./fastify-adapter.ts";
import { fetchAdapter } from "./fetch-adapter.ts";
import { honoAdapter } from "./hono-adapter.ts";
import { nodeAdapter } from "./node-adapter.ts";
import { describePayments } from "./payments/describe-payments.ts";
import { beginRows, slowRows } from "./payments/begin-rows.ts";
import { openRows } from "./payments/open-rows.ts";
import { triggerRows } from "./payments/trigger-rows.ts";
import { coreRows, paymentRows } from "./payments/rows.ts";
import { isWhole } from "../support/runs/share.ts";

const rows = [...paymentRows, ...openRows, ...beginRows, ...triggerRows];

test("no two rows have one title", () => {
  const titles = [...rows, ...slowRows].map(({ title }) => title);
  expect(new Set(titles).size).toBe(titles.length);
});

describePayments(rows, [expressAdapter("express 5", express5)], ["sqlite"]);
const others = [
  expressAdapter("express 4", express4),
  nodeAdapter,
  fastifyAdapter,
  fetchAdapter,
  honoAdapter,
];
describePayments(isWhole ? paymentRows : coreRows, others, ["sqlite"]);
