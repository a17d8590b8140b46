// The state table of a payment in one transaction: on SQLite all of it at Express 5, and at every other door what doors may do with it; on
// servers its core. payments.long.test.ts has all of it there.
import { expect, test } from "@jest/globals";
import express4 from "express4";
import express5 from "express";
import { expressDoor } from "./express-door.ts";
import { fastifyDoor } from "./fastify-door.ts";
import { fetchDoor } from "./fetch-door.ts";
import { honoDoor } from "./hono-door.ts";
import { nodeDoor } from "./node-door.ts";
import { describePayments } from "./payments/describe-payments.ts";
import { beginRows, slowRows } from "./payments/begin-rows.ts";
import { openRows } from "./payments/open-rows.ts";
import { triggerRows } from "./payments/trigger-rows.ts";
import { coreRows, paymentRows } from "./payments/rows.ts";

const rows = [...paymentRows, ...openRows, ...beginRows, ...triggerRows];

test("no two rows have one title", () => {
  const titles = [...rows, ...slowRows].map(({ title }) => title);
  expect(new Set(titles).size).toBe(titles.length);
});

const express = expressDoor("express 5", express5);
describePayments(rows, [express], ["sqlite"]);
describePayments(coreRows, [express], ["postgresql", "mariadb"]);
// Without a server all of them take a second.
const others = [expressDoor("express 4", express4), nodeDoor, fastifyDoor, fetchDoor, honoDoor];
describePayments(paymentRows, others, ["sqlite"]);
