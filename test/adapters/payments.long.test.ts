// An adapter knows of an engine whether its transactions wait: with SQLite, in payments.table.test.ts, PostgreSQL is enough.
import express5 from "express";
import express4 from "express4";
import { expressAdapter } from "./express-adapter.ts";
import { fastifyAdapter } from "./fastify-adapter.ts";
import { fetchBehindNode } from "./fetch-behind-node.ts";
import { fetchAdapter } from "./fetch-adapter.ts";
import { honoAdapter } from "./hono-adapter.ts";
import { nodeAdapter } from "./node-adapter.ts";
import { describePayments } from "./payments/describe-payments.ts";
import { beginRows, slowRows } from "./payments/begin-rows.ts";
import { openRows } from "./payments/open-rows.ts";
import { coreRows, paymentRows } from "./payments/rows.ts";
import { triggerRows } from "./payments/trigger-rows.ts";

const rows = [...paymentRows, ...openRows].filter(({ engineAlone }) => engineAlone !== true);
const adapters = [
  expressAdapter("express 4", express4),
  nodeAdapter,
  fastifyAdapter,
  fetchAdapter,
  honoAdapter,
];
const express = expressAdapter("express 5", express5);

describePayments(
  [...paymentRows, ...openRows, ...beginRows, ...triggerRows],
  [express],
  ["postgresql", "mariadb"],
);
describePayments(coreRows, [fetchAdapter], ["mariadb"]);
describePayments(rows, adapters, ["postgresql"]);
describePayments(paymentRows, [fetchBehindNode], ["sqlite"]);
describePayments(rows, [fetchBehindNode], ["postgresql"]);
describePayments(slowRows, [express], ["sqlite"]);
