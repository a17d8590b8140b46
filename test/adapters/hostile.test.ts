// Hostile requests to a policy with components of every kind: one status, one body, one set of fields at every adapter, as messages and byte
// for byte. Here those that differ most, one for each package that is an adapter; the others: hostile.long.test.ts.
import { beforeEach, expect, test } from "@jest/globals";
import express5 from "express";
import { describeRows } from "./describe-adapters.ts";
import { describePlainTcp, describeSockets } from "./describe-sockets.ts";
import { expressAdapter } from "./express-adapter.ts";
import { fastifyAdapter } from "./fastify-adapter.ts";
import { fetchAdapter } from "./fetch-adapter.ts";
import { hostileRows } from "./hostile-rows.ts";
import { allowWarnings } from "../support/runs/expect-warning.ts";

// A policy of these rows may cover little: that is a warning of the factory.
beforeEach(() => {
  allowWarnings(/^\[signature-covers-little\]/);
});

test("no two hostile rows have one title, and many let a request in", () => {
  const titles = hostileRows.map(({ title }) => title);
  expect(titles.filter((title, index) => titles.indexOf(title) !== index)).toEqual([]);
  expect(hostileRows.filter(({ code }) => code === undefined).length).toBeGreaterThan(30);
  expect(hostileRows.filter(({ code }) => code !== undefined).length).toBeGreaterThan(80);
});

const express = expressAdapter("express 5", express5);

describeRows(hostileRows, [express, fastifyAdapter, fetchAdapter]);
describeSockets([express, fastifyAdapter]);
describePlainTcp([express, fastifyAdapter]);
