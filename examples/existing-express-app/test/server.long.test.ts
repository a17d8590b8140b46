import { beforeEach, expect, test } from "@jest/globals";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import {
  eachOnce,
  exchange,
  recordedOnce,
  startExample,
  type RunningExample,
} from "@countersign/test-support/servers/example.ts";
import { startProxy } from "./proxy.ts";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";

let example: RunningExample;
let proxy: string;

beforeEach(async () => {
  // The app's own sessions, as express-session has them by default.
  expectWarning(/^Warning: connect\.session\(\) MemoryStore is not$/);
  expectWarning(/^designed for a production environment, as it will leak$/);
  expectWarning(/^memory, and will not scale past a single process\.$/);
  example = await startExample(new URL("../dist/server.js", import.meta.url));
  afterTest(() => example.stop());
  proxy = await startProxy(example.url);
});

test("pays a payout once and handles an event once behind a proxy, and ends with 0", async () => {
  expect(await exchange(proxy, {})).toEqual(eachOnce);
  expect(example.records()).toEqual(recordedOnce);
  expect(await example.stop()).toBe(0);
});

test("goes on parsing the bodies of its other routes, and keeps their sessions", async () => {
  const visit = async (cookie?: string): Promise<Response> =>
    fetch(`${proxy}/visits`, {
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
  expect(await exchange(proxy, claims)).toMatchObject({ payout: 401, webhook: 200 });
  expect(example.records().payouts).toEqual([]);
});
