// I16: an app's error handler never sees what a route has refused or rolled back, so it cannot answer that it was paid.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { GuardError } from "@countersign/core";
import { thrownChannelName } from "../../packages/kernel/core/dist/observation/channels.js";
import { checkedRoute, idempotentRoute } from "@countersign/fetch";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { createStores } from "@countersign/store-sql";
import { afterTest } from "../support/runs/after-test.ts";
import { describe, expect, test } from "@jest/globals";
import Database from "libsql";
import { expectWarning } from "../support/runs/expect-warning.ts";

const post = (): Request => new Request("https://platform.example/refunds", { method: "POST", body: "{}" });
const fault = new Error("the app failed");
const fail = (): never => {
  throw fault;
};
const key = (): string => "key-1";

/** What subscribers of `countersign:thrown` hear of. */
function heard(): readonly unknown[] {
  const events: unknown[] = [];
  const listen = (event: unknown): void => void events.push(event);
  subscribe(thrownChannelName, listen);
  afterTest(() => void unsubscribe(thrownChannelName, listen));
  return events;
}

const modes = {
  "in lease mode"(handler: () => never, onReject: (error: unknown) => void) {
    const store = memoryIdempotencyStore();
    return { store, route: idempotentRoute({ store, key, onReject }, handler) };
  },
  "in a transaction"(handle: () => never, onReject: (error: unknown) => void) {
    const database = new Database(":memory:");
    const stores = createStores({ database, pruneIntervalMs: 0 });
    afterTest(() => {
      stores.close();
      database.close();
    });
    return {
      store: stores.idempotency,
      route: idempotentRoute({ stores, scope: "pay", key, onReject, handle }),
    };
  },
};

describe.each(Object.entries(modes))("a route whose handler throws %s", (mode, routeOf) => {
  // One transaction rolls back; in lease mode nobody knows.
  const left = mode === "in lease mode" ? "held" : "free";

  test("answers 500 itself, and tells onReject and subscribers of the very error", async () => {
    const events = heard();
    const rejected: unknown[] = [];
    const { route, store } = routeOf(fail, (error) => void rejected.push(error));
    const request = post();
    const answer = await route(request);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([500, "application/problem+json"]);
    expect(await answer.json()).toEqual({ type: "about:blank", title: "Internal Server Error", status: 500 });
    expect(rejected).toEqual([fault]);
    expect(events).toEqual([{ error: fault, req: request }]);
    expect(store.read("key-1")?.state ?? "free").toBe(left);
  });

  test("answers 500 where a refusal's own members cannot be sent", async () => {
    const refuse = (): never => {
      const unsendable = { headers: { "X-Note": "line\nfeed" }, problem: { amount: 10n } };
      throw new GuardError({ status: 422, code: "c", message: "m", ...unsendable });
    };
    const { route, store } = routeOf(refuse, () => undefined);
    expect((await route(post())).status).toBe(500);
    expect(store.read("key-1")?.state ?? "free").toBe(left);
    expectWarning(
      /idempotencyGuard could not answer a refusal: TypeError: "Do not know how to serialize a BigInt"/,
    );
  });
});

test.each([
  ["checkedRoute", checkedRoute({ name: "open" }, () => 1, fail)],
  [
    "idempotentRoute, for a request that owns no key",
    idempotentRoute(
      { store: memoryIdempotencyStore(), key: () => undefined, required: false },
      fail as () => Response,
    ),
  ],
])("leaves a handler's throw to the app: %s", async (_name, route) => {
  const events = heard();
  const request = post();
  await expect(route(request)).rejects.toBe(fault);
  expect(events).toEqual([{ error: fault, req: request }]);
});
