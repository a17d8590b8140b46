// A door knows of an engine whether its transactions wait: with SQLite, in payments.test.ts, PostgreSQL is enough.
import express5 from "express";
import express4 from "express4";
import { expressDoor } from "./express-door.ts";
import { fastifyDoor } from "./fastify-door.ts";
import { fetchBehindNode } from "./fetch-behind-node.ts";
import { fetchDoor } from "./fetch-door.ts";
import { honoDoor } from "./hono-door.ts";
import { nodeDoor } from "./node-door.ts";
import { describePayments } from "./payments/describe-payments.ts";
import { beginRows, slowRows } from "./payments/begin-rows.ts";
import { openRows } from "./payments/open-rows.ts";
import { coreRows, paymentRows } from "./payments/rows.ts";
import { triggerRows } from "./payments/trigger-rows.ts";

const rows = [...paymentRows, ...openRows].filter(({ engineAlone }) => engineAlone !== true);
const doors = [expressDoor("express 4", express4), nodeDoor, fastifyDoor, fetchDoor, honoDoor];
const express = expressDoor("express 5", express5);

describePayments(
  [...paymentRows, ...openRows, ...beginRows, ...triggerRows],
  [express],
  ["postgresql", "mariadb"],
);
describePayments(coreRows, [fetchDoor], ["mariadb"]);
describePayments(rows, doors, ["postgresql"]);
describePayments(paymentRows, [fetchBehindNode], ["sqlite"]);
describePayments(rows, [fetchBehindNode], ["postgresql"]);
describePayments(slowRows, [express], ["sqlite"]);
