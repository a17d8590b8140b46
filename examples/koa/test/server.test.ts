import { afterEach, beforeEach, expect, test } from "@jest/globals";
import {
  byProxy,
  eachOnce,
  exchange,
  payWithTooManyLines,
  recordedOnce,
  startExample,
  type RunningExample,
} from "../../../test/support/example.ts";

let example: RunningExample;

beforeEach(async () => {
  example = await startExample(new URL("../dist/server.js", import.meta.url));
});
afterEach(async () => void (await example.stop()));

test("pays a payout once, handles an event once, and ends with 0", async () => {
  expect(await exchange(example.url, byProxy)).toEqual(eachOnce);
  expect(example.records()).toEqual(recordedOnce);
  expect(await example.stop()).toBe(0);
});

// Of those that Node drops, one may be the X-Forwarded-For of the proxy.
test("refuses a payout of more header lines than Node keeps", async () => {
  expect(await payWithTooManyLines(example.url, byProxy)).toBe(431);
});
