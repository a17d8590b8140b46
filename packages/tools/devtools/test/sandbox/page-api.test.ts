import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { payoutVariants } from "../../src/sandbox/payout-variants.ts";
import { PageBench, secrets, seeded } from "./page-bench.ts";

const bench = new PageBench();
let clock = 0;
beforeEach(async () => {
  clock = 1_700_000_000_000;
  bench.status = 200;
  await bench.open({ clock: () => clock });
});
afterEach(() => bench.close());

async function tried(id: number, attempts: number): Promise<void> {
  const tries = (): number =>
    bench.sandbox.deliveries.list().find((one) => one.id === id)?.attempts.length ?? 0;
  await eventually(() => tries() >= attempts);
}

async function failingDelivery(): Promise<void> {
  bench.status = 503;
  bench.register();
  bench.sandbox.changeBuyerStatus("buyer-1", "ACTIVE");
  await tried(1, 1);
}

const post = async (path: string, body: unknown = {}): Promise<unknown> => {
  const { status, body: answer } = await bench.ask("POST", path, { body });
  return { status, ...answer };
};
const stateOf = (state: string, stopped?: string): object => ({
  delivery: { state, ...(stopped === undefined ? {} : { stopped }) },
});

describe("a delivery", () => {
  test("shows bytes, header fields, schedule and every exchange", async () => {
    await failingDelivery();
    const { body } = await bench.ask("GET", "/sandbox/deliveries/1");
    expect(body).toMatchObject({
      delivery: { id: 1, state: "pending", eventTypes: ["buyer.status_changed"] },
      request: { method: "POST", target: "/hooks" },
      schedule: { givesUpAt: clock + 86_400_000 },
      attempts: [{ status: 503, answerBody: expect.stringContaining('"length"') }],
    });
    const request = body["request"] as { headers: [string, string][]; body: string; bodyBytes: number };
    expect(request.headers).toContainEqual(["Authorization", "Basic [masked]"]);
    expect(JSON.parse(request.body)).toMatchObject({ events: [{ type: "buyer.status_changed" }] });
    expect(Buffer.byteLength(request.body)).toBe(request.bodyBytes);
    const { later } = body["schedule"] as { later: number[] };
    expect(later).toHaveLength(5);
    for (const [index, at] of later.entries()) expect(at).toBeGreaterThan(later[index - 1] ?? clock);
  });

  test("is paused, and continued at once where its time has come", async () => {
    await failingDelivery();
    expect(await post("/sandbox/deliveries/1/pause")).toMatchObject({
      status: 200,
      ...stateOf("pending", "paused"),
    });
    await bench.sandbox.deliveries.idle();
    expect(bench.sandbox.deliveries.list()[0]?.nextAttemptAt).toBeUndefined();
    clock += 3_600_000;
    bench.status = 200;
    expect(await post("/sandbox/deliveries/1/continue")).toMatchObject({ status: 200 });
    await bench.sandbox.deliveries.idle();
    expect(bench.sandbox.deliveries.list()).toMatchObject([
      { state: "delivered", attempts: [{}, { status: 200 }] },
    ]);
    expect(bench.sandbox.deliveries.list()[0]?.stopped).toBeUndefined();
  });

  test("that is paused goes out when it is sent again", async () => {
    await failingDelivery();
    await post("/sandbox/deliveries/1/pause");
    bench.status = 200;
    expect(await post("/sandbox/deliveries/resend", { id: "1" })).toMatchObject({ status: 202 });
    await bench.sandbox.deliveries.idle();
    expect(bench.sandbox.deliveries.list()).toMatchObject([{ state: "delivered" }]);
  });

  test("is dropped, also when it was paused, and stays so", async () => {
    await failingDelivery();
    await post("/sandbox/deliveries/1/pause");
    expect(await post("/sandbox/deliveries/1/drop")).toMatchObject({
      status: 200,
      ...stateOf("failed", "dropped"),
    });
    await bench.sandbox.deliveries.idle();
    for (const action of ["pause", "continue", "drop"])
      expect(await post(`/sandbox/deliveries/1/${action}`)).toMatchObject({
        status: 409,
        code: "delivery-state",
      });
  });

  test.each([
    ["pause", "pending", "paused"],
    ["drop", "failed", "dropped"],
  ])("stays as it was told to by %s while it was under way", async (action, state, stopped) => {
    bench.status = undefined;
    bench.register();
    let release = (): void => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    bench.hold = held;
    bench.sandbox.changeBuyerStatus("buyer-1", "ACTIVE");
    await eventually(() => bench.received > 0);
    expect(await post(`/sandbox/deliveries/1/${action}`)).toMatchObject({ status: 200 });
    release();
    await tried(1, 1);
    expect(bench.sandbox.deliveries.list()).toMatchObject([{ state, stopped }]);
    expect(bench.sandbox.deliveries.list()[0]?.nextAttemptAt).toBeUndefined();
  });

  test.each(["body", "signature", "password"])(
    "is sent once with its %s spoilt, and goes on as before",
    async (part) => {
      bench.register();
      bench.sandbox.changeBuyerStatus("buyer-1", "ACTIVE");
      await bench.sandbox.deliveries.idle();
      bench.status = 401;
      expect(await post("/sandbox/deliveries/1/spoil", { part })).toMatchObject({
        status: 200,
        delivery: { state: "delivered" },
        attempts: [{ status: 200 }, { status: 401, spoilt: part }],
      });
    },
  );

  test.each([
    ["GET", "/sandbox/deliveries/7"],
    ["GET", "/sandbox/deliveries/x"],
    ["POST", "/sandbox/deliveries/7/pause"],
    ["POST", "/sandbox/deliveries/7/continue"],
    ["POST", "/sandbox/deliveries/7/drop"],
    ["POST", "/sandbox/deliveries/7/spoil"],
  ])("that is not there: %s %s is 404", async (method, path) => {
    const body = path.endsWith("spoil") ? { part: "body" } : {};
    expect(await bench.ask(method, path, method === "GET" ? {} : { body })).toMatchObject({ status: 404 });
  });

  test("is spoilt in no other part", async () => {
    await failingDelivery();
    expect(await post("/sandbox/deliveries/1/spoil", { part: "url" })).toMatchObject({ status: 400 });
  });
});

describe("lists", () => {
  test("have pages of deliveries", async () => {
    bench.register();
    for (let number = 1; number <= 7; number += 1)
      bench.sandbox.deliveries.notify([{ type: "test.event", data: { number } }]);
    await bench.sandbox.deliveries.idle();
    const ids = async (query: string): Promise<unknown> => {
      const { body } = await bench.ask("GET", `/sandbox/deliveries?${query}`);
      return (body["deliveries"] as { id: number }[]).map(({ id }) => id);
    };
    expect(await ids("limit=3")).toEqual([5, 6, 7]);
    expect(await ids("limit=3&before=5")).toEqual([2, 3, 4]);
    expect(await ids("limit=3&before=1")).toEqual([]);
    expect((await bench.ask("GET", "/sandbox/deliveries?before=0")).status).toBe(400);
  });

  test("have pages of buyers, sellers and payment requests, newest first", async () => {
    for (let number = 1; number <= 4; number += 1) {
      bench.sandbox.changeBuyerStatus(`b${number}`, "ACTIVE");
      bench.sandbox.changeSellerStatus(`s${number}`, "REJECTED");
      bench.sandbox.createPaymentRequest({ payment_request_id: `p${number}`, due_date: "2030-01-31" });
    }
    const query = "limit=2&offset=1";
    expect((await bench.ask("GET", `/sandbox/buyers?${query}`)).body).toEqual({
      buyers: [
        { buyer_id: "b3", status: "ACTIVE" },
        { buyer_id: "b2", status: "ACTIVE" },
      ],
      total: 4,
    });
    expect((await bench.ask("GET", `/sandbox/sellers?${query}`)).body).toMatchObject({
      sellers: [{ seller_id: "s3", status: "REJECTED" }, {}],
    });
    expect((await bench.ask("GET", `/sandbox/payment-requests?${query}`)).body).toMatchObject({
      payment_requests: [{ payment_request_id: "p3", status: "PENDING_REPAYMENT" }, {}],
      total: 4,
    });
    expect((await bench.ask("GET", "/sandbox/buyers?limit=1000")).status).toBe(400);
  });
});

describe("a search", () => {
  const found = async (search: string): Promise<unknown> => {
    const { body } = await bench.ask("GET", `/sandbox/deliveries?search=${encodeURIComponent(search)}`);
    return [(body["deliveries"] as { id: number }[]).map(({ id }) => id), body["counts"]];
  };

  test("finds deliveries by number, type, event, status, state and data", async () => {
    bench.register("/hooks/first");
    bench.sandbox.deliveries.notify([{ event_id: "event-A", type: "test.one", data: { buyer_id: "b-17" } }]);
    await bench.sandbox.deliveries.idle();
    bench.status = 503;
    bench.sandbox.deliveries.notify([{ event_id: "event-503", type: "test.two", data: {} }]);
    await tried(2, 1);
    const one = { pending: 0, delivered: 1, failed: 0 };
    const two = { pending: 1, delivered: 0, failed: 0 };
    for (const text of ["#1", "TEST.one", "event-A", "b-17", "200", "delivered"])
      expect([text, await found(text)]).toEqual([text, [[1], one]]);
    for (const text of ["test.two", "503", "pending", "event-503"])
      expect([text, await found(text)]).toEqual([text, [[2], two]]);
    expect(await found("hooks/first")).toEqual([[1, 2], { pending: 1, delivered: 1, failed: 0 }]);
    // Part of an event's id and of a URL's port, and no status.
    expect(await found("502")).toEqual([[], { pending: 0, delivered: 0, failed: 0 }]);
    expect(await bench.ask("GET", `/sandbox/deliveries?search=${"x".repeat(257)}`)).toMatchObject({
      status: 400,
    });
  });

  test("finds payouts by key, variant, fields and status", async () => {
    const url = `${bench.platform}/pay`;
    await post("/sandbox/payouts", { url, idempotency_key: "key-A.f.b", name: "Müller" });
    bench.status = 401;
    await post("/sandbox/payouts", { url, idempotency_key: "key-B.f.b", variant: "expired" });
    const numbers = async (search: string): Promise<unknown> => {
      const { body } = await bench.ask("GET", `/sandbox/payouts?search=${encodeURIComponent(search)}`);
      return [(body["payouts"] as { number: number }[]).map(({ number }) => number), body["total"]];
    };
    for (const text of ["key-a", "müller", "200", "plain"])
      expect([text, await numbers(text)]).toEqual([text, [[1], 1]]);
    for (const text of ["key-B.f.b", "expired", "401"])
      expect([text, await numbers(text)]).toEqual([text, [[2], 1]]);
    expect(await numbers("")).toEqual([[2, 1], 2]);
    expect(await bench.ask("GET", "/sandbox/buyers?search=x")).toMatchObject({ status: 400 });
  });
});

test("an endpoint from the page gets what happens, and its credentials come back in no answer", async () => {
  const { username, password, secret } = seeded;
  const given = {
    url: `${bench.platform}/hooks`,
    auth_username: username,
    auth_password: password,
    signature_secret: secret,
  };
  const path = "/api/v2/b2b-payments/webhook-endpoints";
  const { status, text } = await bench.ask("POST", path, { body: given });
  expect(status).toBe(201);
  bench.sandbox.changeBuyerStatus("buyer-1", "ACTIVE");
  await bench.sandbox.deliveries.idle();
  expect(bench.sandbox.deliveries.list()).toMatchObject([{ state: "delivered" }]);
  const { text: overview } = await bench.ask("GET", "/sandbox/overview");
  for (const credential of secrets) expect((text + overview).includes(credential)).toBe(false);
});

describe("a payout from the page", () => {
  test("is every variant of the command line, each with its signature base", async () => {
    for (const { variant, expected } of payoutVariants) {
      bench.status = variant === "plain" ? 200 : 401;
      const { status, body } = await bench.ask("POST", "/sandbox/payouts", {
        body: { url: `${bench.platform}/pay`, variant, iban: "DE02120300000000202051" },
      });
      expect({ variant, status }).toEqual({ variant, status: 201 });
      const steps = body["steps"] as {
        expected: string[];
        request: { signatureBase: string; body: string };
      }[];
      expect(steps.at(-1)).toMatchObject({ expected });
      expect(steps[0]?.request.signatureBase).toMatch(/^"@method": POST\n"@path": \//);
      expect(JSON.parse(steps[0]?.request.body ?? "")).toMatchObject({
        beneficiary: { iban: "DE02120300000000202051" },
      });
    }
    const { body } = await bench.ask("GET", "/sandbox/payouts?limit=2");
    expect(body).toMatchObject({
      payouts: [{ number: payoutVariants.length, variant: "concurrent" }, { variant: "duplicate" }],
      total: payoutVariants.length,
    });
    expect((await bench.ask("GET", "/sandbox/payouts/1")).body).toMatchObject({
      variant: "plain",
      asExpected: true,
    });
    expect((await bench.ask("GET", `/sandbox/payouts/${payoutVariants.length + 1}`)).status).toBe(404);
  });

  test("says whether its URL has accepted one: a path at which nothing is refuses every spoilt one too", async () => {
    const send = async (variant: string, path = "/pay"): Promise<unknown> => {
      const order = { url: `${bench.platform}${path}`, variant };
      const { body } = await bench.ask("POST", "/sandbox/payouts", { body: order });
      return [body["asExpected"], body["isUrlProven"]];
    };
    bench.status = 401;
    expect(await send("expired")).toEqual([true, false]);
    bench.status = 200;
    expect(await send("plain")).toEqual([true, true]);
    bench.status = 401;
    expect(await send("expired")).toEqual([true, true]);
    expect(await send("expired", "/elsewhere")).toEqual([true, false]);
    // A spoilt one that was taken proves nothing of those that are refused later.
    bench.status = 200;
    expect(await send("tamper-body", "/elsewhere")).toEqual([false, false]);
    bench.status = 401;
    expect(await send("expired", "/elsewhere")).toEqual([true, false]);
    // Nor does one that was taken before the URL began to refuse unspoilt ones too.
    expect(await send("plain")).toEqual([false, false]);
    expect(await send("expired")).toEqual([true, false]);
  });

  test.each<[string, unknown, string]>([
    ["a text byte for byte", '{"value":10.10, "big":12345678901234567890}', ""],
    ["an object as JSON", { value: "10.10" }, '{"value":"10.10"}'],
  ])("has the amount that it is given: %s", async (_name, amount, written) => {
    const sent = await post("/sandbox/payouts", { url: `${bench.platform}/pay`, amount });
    const expected = `"amount":${written === "" ? String(amount) : written},"reference":`;
    expect(sent).toMatchObject({
      fields: { amount },
      steps: [{ request: { body: expect.stringContaining(expected) } }],
    });
  });

  test("that gets no answer says why", async () => {
    bench.status = undefined;
    const sent = await post("/sandbox/payouts", { url: `${bench.platform}/pay` });
    expect(sent).toMatchObject({ asExpected: false, steps: [{ error: { code: "connection-lost" } }] });
  });

  test.each([
    ["no URL", {}],
    ["what is none", { url: "ftp://127.0.0.1/" }],
    ["plain http to another host", { url: "http://platform.example/pay" }],
    ["an unknown variant", { url: "http://127.0.0.1:9/", variant: "other" }],
    ["too many at once", { url: "http://127.0.0.1:9/", variant: "concurrent", count: 101 }],
    ["an amount that is no JSON", { url: "http://127.0.0.1:9/", amount: "10.10 EUR" }],
    ["an amount that is no object", { url: "http://127.0.0.1:9/", amount: "[10.10]" }],
    ["an unknown field", { url: "http://127.0.0.1:9/", privateKey: "x" }],
  ])("is refused: %s", async (_name, body) => {
    expect(await post("/sandbox/payouts", body)).toMatchObject({ status: 400, code: "invalid-request" });
    expect(bench.received).toBe(0);
  });
});

describe("the stream", () => {
  test("tells counts, the numbers of deliveries that have changed, and what else has changed", async () => {
    bench.register();
    let isOpen = false;
    const streamed = bench.stream((text) => {
      // What changes before the stream is open is not told by it.
      if (!isOpen) bench.sandbox.changeBuyerStatus("buyer-1", "ACTIVE");
      isOpen = true;
      return text.includes('"delivered":1') && text.includes('"buyers"');
    });
    const events = (await streamed)
      .split("\n\n")
      .filter((event) => event.startsWith("event: change\ndata: "));
    const last: unknown = JSON.parse(events.at(-1)?.split("data: ")[1] ?? "");
    expect(last).toEqual({
      counts: expect.objectContaining({ pending: 0, delivered: 1 }),
      changed: [1],
      kinds: expect.any(Array),
    });
  });

  test("ends with the service", async () => {
    const streamed = bench.stream(() => {
      void bench.sandbox.close();
      return false;
    });
    expect(await streamed).toBe(":\n\n");
  });
});
