// The two doors that differ most: one on node:http, one on Request and Response. All others: doors.long.test.ts.
import { beforeEach, expect, test } from "@jest/globals";
import express5 from "express";
import { describeDoors } from "./describe-doors.ts";
import { expressDoor } from "./express-door.ts";
import { fetchDoor } from "./fetch-door.ts";
import { table } from "./table.ts";
import { allowWarnings } from "../support/runs/expect-warning.ts";

// The rows assert answers and keys. Doors without a subscriber warn of some of them too.
beforeEach(() => {
  allowWarnings(
    /^\[(?:forwarded-for-ignored|completion-delayed|handler-answered-409|commit-not-confirmed)\]/,
  );
});

test("no two rows have one title", () => {
  const titles = table.map(({ title }) => title);
  expect(titles.filter((title, index) => titles.indexOf(title) !== index)).toEqual([]);
  expect(titles.length).toBeGreaterThan(300);
});

describeDoors([expressDoor("express 5", express5), fetchDoor]);
