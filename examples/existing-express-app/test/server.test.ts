import { afterEach, beforeEach, expect, test } from "@jest/globals";
import {
  eachOnce,
  exchange,
  recordedOnce,
  startExample,
  type RunningExample,
} from "@countersign/test-support/servers/example.ts";
import { startProxy, type TestProxy } from "./proxy.ts";

let example: RunningExample;
let proxy: TestProxy;

beforeEach(async () => {
  example = await startExample(new URL("../dist/server.js", import.meta.url));
  proxy = await startProxy(example.url);
});
afterEach(async () => {
  await proxy.close();
  await example.stop();
});

test("pays a payout once and handles an event once behind a proxy, and ends with 0", async () => {
  expect(await exchange(proxy.url, {})).toEqual(eachOnce);
  expect(example.records()).toEqual(recordedOnce);
  await proxy.close();
  expect(await example.stop()).toBe(0);
});

test("goes on parsing the bodies of its other routes, and keeps their sessions", async () => {
  const visit = async (cookie?: string): Promise<Response> =>
    fetch(`${proxy.url}/visits`, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...(cookie === undefined ? {} : { Cookie: cookie }) },
      body: JSON.stringify({ page: "prices" }),
    });
  const first = await visit();
  expect(await first.json()).toEqual({ visits: 1, page: "prices" });
  expect(first.headers.get("strict-transport-security")).toBeTruthy();
  expect(first.headers.get("ratelimit-policy")).toBeTruthy();
  const cookie = first.headers.get("set-cookie")?.split(";")[0];
  expect(await (await visit(cookie)).json()).toEqual({ visits: 2, page: "prices" });
});

test("believes the proxy, and not what a caller says of itself", async () => {
  const claims = { "X-Forwarded-For": "192.0.2.10", "X-Test-Caller": "192.0.2.11" };
  expect(await exchange(proxy.url, claims)).toMatchObject({ payout: 401, webhook: 200 });
  expect(example.records().payouts).toEqual([]);
});
