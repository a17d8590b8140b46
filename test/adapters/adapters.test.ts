// The two adapters that differ most: one on node:http, one on Request and Response. All others: adapters.long.test.ts.
import { expect, test } from "@jest/globals";
import express5 from "express";
import { describeAdapters } from "./describe-adapters.ts";
import { expressAdapter } from "./express-adapter.ts";
import { fetchAdapter } from "./fetch-adapter.ts";
import { table } from "./table.ts";

test("no two rows have one title", () => {
  const titles = table.map(({ title }) => title);
  expect(titles.filter((title, index) => titles.indexOf(title) !== index)).toEqual([]);
  expect(titles.length).toBeGreaterThan(300);
});

describeAdapters([expressAdapter("express 5", express5), fetchAdapter]);
