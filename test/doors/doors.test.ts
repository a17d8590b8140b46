// The two doors that differ most: one on node:http, one on Request and Response. All others: doors.long.test.ts.
import { expect, test } from "@jest/globals";
import express5 from "express";
import { describeDoors } from "./describe-doors.ts";
import { expressDoor } from "./express-door.ts";
import { fetchDoor } from "./fetch-door.ts";
import { table } from "./table.ts";

test("no two rows have one title", () => {
  const titles = table.map(({ title }) => title);
  expect(titles.filter((title, index) => titles.indexOf(title) !== index)).toEqual([]);
  expect(titles.length).toBeGreaterThan(300);
});

describeDoors([expressDoor("express 5", express5), fetchDoor]);
