import { afterAll, beforeAll, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { apiKey, ServiceBench } from "./service-bench.ts";

const endpoints = "/api/v2/b2b-payments/webhook-endpoints";
// 23:59:59.999 UTC.
const now = Date.UTC(2024, 1, 28, 23, 59, 59, 999);
const bench = new ServiceBench();
let clock = now;

beforeAll(async () => {
  await bench.open({ clock: () => clock });
  await bench.register();
});
afterAll(() => bench.close());
beforeEach(async () => {
  await bench.sandbox.deliveries.idle();
  bench.webhooks.length = 0;
  clock = now;
});

async function sent(): Promise<unknown[]> {
  await bench.sandbox.deliveries.idle();
  return bench.events.map(({ type, data }) => ({ type, data }));
}

describe("every path", () => {
  test.each<[string, string | undefined]>([
    ["no API key", undefined],
    ["another one", "test-api-kez"],
    ["its beginning", "test-api-ke"],
    ["a longer one", `${apiKey}x`],
  ])("refuses %s with 401, whether the path exists or not", async (_name, key) => {
    const headers = key === undefined ? {} : { "X-API-KEY": key };
    for (const path of ["/sandbox/buyers/b1", "/nowhere", endpoints]) {
      const response = await fetch(bench.sandbox.url + path, { method: "POST", headers });
      expect(response.status).toBe(401);
      expect(await response.json()).toEqual({
        type: "about:blank",
        title: "Unauthorized",
        status: 401,
        code: "api-key-wrong",
        detail: "X-API-KEY is missing or wrong",
      });
    }
  });

  const event = { type: "t", data: {} };
  const [invalid, missing] = ["400 invalid-request", "404 not-found"];
  test.each<[request: string, body: unknown, expected: string, detail?: string]>([
    ["GET /", undefined, missing],
    ["GET /sandbox", undefined, missing],
    ["GET /sandbox/payouts", undefined, missing],
    ["GET /SANDBOX/deliveries", undefined, missing],
    ["GET /sandbox/deliveries/", undefined, missing],
    ["GET /sandbox/buyers/nobody", undefined, missing],
    ["GET /sandbox/sellers/nobody", undefined, missing],
    ["GET /sandbox/payment-requests/nobody", undefined, missing],
    ["POST /sandbox/payment-requests/nobody/repay", undefined, missing],
    ["POST /sandbox/payment-requests/nobody/remind", undefined, missing],
    ["POST /sandbox/deliveries/resend", { id: "nobody" }, missing],
    ["POST /sandbox/deliveries/resend", {}, invalid],
    ["POST /sandbox/deliveries/resend", { id: "e", state: "failed" }, invalid],
    ["GET /sandbox/buyers/%ff", undefined, invalid],
    ["GET /sandbox/buyers/%00", undefined, invalid],
    [`GET /sandbox/buyers/${"x".repeat(257)}`, undefined, invalid],
    ["POST /sandbox/buyers/x/status", { status: "DELETED" }, invalid],
    ["POST /sandbox/sellers/x/status", { status: "active" }, invalid],
    ["POST /sandbox/sellers/x/status", { status: null }, invalid],
    ["POST /sandbox/payment-requests", { due_date: "2023-02-29" }, invalid, "due_date: "],
    ["POST /sandbox/payment-requests", { due_date: "2024-3-1" }, invalid, "due_date: "],
    ["POST /sandbox/payment-requests", { due_date: 20240301 }, invalid, "due_date: "],
    ["POST /sandbox/payment-requests", {}, invalid, "due_date: "],
    ["POST /sandbox/events", { data: {} }, invalid],
    ["POST /sandbox/events", { type: "", data: {} }, invalid],
    ["POST /sandbox/events", { type: "t", data: [] }, invalid],
    ["POST /sandbox/events", { ...event, event_id: "a\nb" }, invalid],
    ["POST /sandbox/events", { ...event, timestamp: "2024-01-02T03:04:05+01:00" }, invalid],
    ["POST /sandbox/events", { events: [] }, invalid],
    ["POST /sandbox/events", { events: [event], ...event }, invalid],
    ["POST /sandbox/events", { events: [event, { type: "t" }] }, invalid],
    ["GET /sandbox/deliveries?state=lost", undefined, invalid],
    ["GET /sandbox/deliveries?limit=0", undefined, invalid],
    ["GET /sandbox/deliveries?limit=1&limit=2", undefined, invalid],
    ["GET /sandbox/deliveries?states=failed", undefined, invalid],
    ["POST /sandbox/confirmations", [], invalid],
    ["POST /sandbox/confirmations", null, invalid],
  ])(
    "refuses %s %j with %s, as problem details, and sends nothing",
    async (request, body, expected, detail = "") => {
      const [method, path = ""] = request.split(" ");
      const answer = await (method === "GET" ? bench.get(path) : bench.post(path, body));
      expect(`${answer.status} ${String(answer.body["code"])}`).toBe(expected);
      expect(String(answer.body["detail"]).startsWith(detail)).toBe(true);
      expect(answer.headers.get("Content-Type")).toMatch(/^application\/problem\+json/);
      expect(await sent()).toEqual([]);
    },
  );

  test.each([
    ["GET", endpoints, "POST"],
    ["PUT", "/sandbox/buyers/b1", "GET, HEAD"],
    ["GET", "/sandbox/sellers/s1/status", "POST"],
    ["DELETE", "/sandbox/payment-requests/p1", "GET, HEAD"],
    ["PUT", "/sandbox/payment-requests", "GET, HEAD, POST"],
    ["PATCH", "/sandbox/confirmations", "GET, HEAD, POST"],
  ])("answers %s %s with 405 and Allow: %s", async (method, path, allow) => {
    const { status, headers, body } = await bench.request(path, { method });
    expect({ status, allow: headers.get("Allow"), code: body["code"] }).toEqual({
      status: 405,
      allow,
      code: "method-not-allowed",
    });
  });

  const json = { "Content-Type": "application/json" };
  test.each<[string, RequestInit, number, string]>([
    ["text", { body: "{}", headers: { "Content-Type": "text/plain" } }, 415, "media-type-unsupported"],
    ["gzip", { body: "{}", headers: { ...json, "Content-Encoding": "gzip" } }, 415, "media-type-unsupported"],
    ["half a document", { body: '{"status": "sec', headers: json }, 400, "invalid-request"],
    ["a list", { body: "[]", headers: json }, 400, "invalid-request"],
    ["null", { body: "null", headers: json }, 400, "invalid-request"],
    ["no body", {}, 400, "invalid-request"],
    [
      "a longer body than 1 MiB",
      { body: `"${"x".repeat(1_048_576)}"`, headers: json },
      413,
      "body-too-large",
    ],
  ])("refuses %s and does not repeat it", async (_name, init, status, code) => {
    const answer = await bench.request("/sandbox/buyers/b1/status", { method: "POST", ...init });
    expect(answer).toMatchObject({ status, body: { status, code } });
    expect(JSON.stringify(answer.body)).not.toContain("sec");
  });

  test("refuses a body in Latin-1, whose letters would become others", async () => {
    const body = Buffer.from('{"reference":"séc"}', "latin1");
    const before = bench.sandbox.confirmations();
    const answer = await bench.request("/sandbox/confirmations", { method: "POST", headers: json, body });
    expect(answer).toMatchObject({ status: 400, body: { code: "invalid-request", status: 400 } });
    expect(bench.sandbox.confirmations()).toEqual(before);
  });

  test("answers a fault of its own with 500, and tells the process alone", async () => {
    const warned = jest.spyOn(process, "emitWarning").mockImplementation(() => {});
    const fail = (): never => {
      throw new Error("the disk is gone");
    };
    const list = jest.spyOn(bench.sandbox.deliveries, "list").mockImplementation(fail);
    const notify = jest.spyOn(bench.sandbox.deliveries, "notify").mockImplementation(fail);
    const answers = [
      await bench.get("/sandbox/deliveries"),
      await bench.post("/sandbox/events", { type: "t", data: {} }),
    ];
    const warnings = warned.mock.calls;
    for (const mock of [warned, list, notify]) mock.mockRestore();
    for (const { status, body } of answers) {
      expect({ status, body }).toEqual({
        status: 500,
        body: { type: "about:blank", title: "Internal Server Error", status: 500 },
      });
    }
    const warning = ["the sandbox failed: the disk is gone (no code)", "CountersignWarning"];
    expect(warnings).toEqual([warning, warning]);
  });
});

describe.each([
  ["buyers", "buyer"],
  ["sellers", "seller"],
])("%s", (path, kind) => {
  test("are PENDING before their first change, and their events chain", async () => {
    const first = await bench.post(`/sandbox/${path}/x-1/status`, { status: "ACTIVE" });
    const second = await bench.post(`/sandbox/${path}/x-1/status`, { status: "SUSPENDED" });
    expect([first.status, second.status]).toEqual([200, 200]);
    expect(first.body).toEqual({
      [`${kind}_id`]: "x-1",
      old_status: "PENDING",
      status: "ACTIVE",
      event_id: expect.any(String),
    });
    expect((await bench.get(`/sandbox/${path}/x-1`)).body).toEqual({
      [`${kind}_id`]: "x-1",
      status: "SUSPENDED",
    });
    expect(await sent()).toEqual([
      {
        type: `${kind}.status_changed`,
        data: { [`${kind}_id`]: "x-1", old_status: "PENDING", new_status: "ACTIVE" },
      },
      {
        type: `${kind}.status_changed`,
        data: { [`${kind}_id`]: "x-1", old_status: "ACTIVE", new_status: "SUSPENDED" },
      },
    ]);
    expect(bench.events.map((event) => event.event_id)).toEqual([
      first.body["event_id"],
      second.body["event_id"],
    ]);
  });

  test("are created as PENDING without an event", async () => {
    const { status, body } = await bench.post(`/sandbox/${path}/x-2/status`, { status: "PENDING" });
    expect({ status, body }).toEqual({ status: 200, body: { [`${kind}_id`]: "x-2", status: "PENDING" } });
    expect((await bench.get(`/sandbox/${path}/x-2`)).body).toMatchObject({ status: "PENDING" });
    expect(await sent()).toEqual([]);
  });

  test("do not change to the status that they have", async () => {
    await bench.post(`/sandbox/${path}/x-3/status`, { status: "ACTIVE" });
    const again = await bench.post(`/sandbox/${path}/x-3/status`, { status: "ACTIVE" });
    expect(again).toMatchObject({ status: 409, body: { code: "status-unchanged" } });
    expect(await sent()).toHaveLength(1);
  });

  test("may be named in any script, and are not mixed up with the other kind", async () => {
    const id = "Käufer/№ 1 ' OR 1=1 --";
    await bench.post(`/sandbox/${path}/${encodeURIComponent(id)}/status`, { status: "REJECTED" });
    expect((await bench.get(`/sandbox/${path}/${encodeURIComponent(id)}`)).body).toEqual({
      [`${kind}_id`]: id,
      status: "REJECTED",
    });
    expect(bench.sandbox[kind === "buyer" ? "buyerStatus" : "sellerStatus"](id)).toBe("REJECTED");
  });
});

describe("payment requests", () => {
  async function create(id: string, dueDate = "2024-03-01"): Promise<void> {
    await bench.post("/sandbox/payment-requests", { payment_request_id: id, due_date: dueDate });
  }

  test("are created as PENDING_REPAYMENT with an id of the caller or of the service", async () => {
    const given = await bench.post("/sandbox/payment-requests", {
      payment_request_id: "p-1",
      due_date: "2024-03-01",
    });
    expect(given).toMatchObject({ status: 201 });
    expect(given.body).toEqual({
      payment_request_id: "p-1",
      status: "PENDING_REPAYMENT",
      due_date: "2024-03-01",
    });
    const { body } = await bench.post("/sandbox/payment-requests", { due_date: "2024-03-01" });
    expect((await bench.get(`/sandbox/payment-requests/${String(body["payment_request_id"])}`)).body).toEqual(
      body,
    );
    expect(await sent()).toEqual([]);
  });

  test("have one id once", async () => {
    await create("p-2", "2024-03-01");
    const again = await bench.post("/sandbox/payment-requests", {
      payment_request_id: "p-2",
      due_date: "2030-01-01",
    });
    expect(again).toMatchObject({ status: 409, body: { code: "payment-request-exists" } });
    expect((await bench.get("/sandbox/payment-requests/p-2")).body).toMatchObject({ due_date: "2024-03-01" });
  });

  test("are CLOSED by the repayment, which happens once", async () => {
    await create("p-3");
    const { status, body } = await bench.post("/sandbox/payment-requests/p-3/repay");
    expect({ status, body }).toMatchObject({ status: 200, body: { status: "CLOSED" } });
    expect((await bench.get("/sandbox/payment-requests/p-3")).body).toMatchObject({ status: "CLOSED" });
    expect(await bench.post("/sandbox/payment-requests/p-3/repay")).toMatchObject({
      status: 409,
      body: { code: "payment-request-closed" },
    });
    expect(await sent()).toEqual([
      { type: "payment_request.repayment.repaid", data: { payment_request_id: "p-3" } },
    ]);
  });

  test.each([
    ["the day before", "2024-02-29", 0, -1],
    ["the last millisecond of the due date", "2024-02-28", 0, 0],
    ["the first millisecond after it", "2024-02-28", 1, 1],
    ["a leap year ahead", "2025-03-01", 0, -367],
    ["long after", "2023-02-28", 0, 365],
  ])("remind on %s in calendar days of UTC", async (name, dueDate, later, days) => {
    await create(name, dueDate);
    clock = now + later;
    const { status, body } = await bench.post(`/sandbox/payment-requests/${encodeURIComponent(name)}/remind`);
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { status: "PENDING_REPAYMENT", days_from_due_date: days },
    });
    expect(await sent()).toEqual([
      {
        type: "payment_request.repayment.reminder",
        data: { payment_request_id: name, due_date: dueDate, days_from_due_date: days },
      },
    ]);
  });

  test("remind as often as asked, but never once they are CLOSED", async () => {
    await create("p-4");
    await bench.post("/sandbox/payment-requests/p-4/remind");
    await bench.post("/sandbox/payment-requests/p-4/remind");
    await bench.post("/sandbox/payment-requests/p-4/repay");
    expect(await bench.post("/sandbox/payment-requests/p-4/remind")).toMatchObject({
      status: 409,
      body: { code: "payment-request-closed" },
    });
    expect(await sent()).toHaveLength(3);
  });
});

describe("events of any type", () => {
  test("are sent as they are given, and change no state", async () => {
    const data = { buyer_id: "raw-1", old_status: "X", new_status: "Y", more: [1, null] };
    const { status, body } = await bench.post("/sandbox/events", { type: "buyer.status_changed", data });
    expect({ status, body }).toEqual({ status: 202, body: { event_ids: [expect.any(String)] } });
    expect(await sent()).toEqual([{ type: "buyer.status_changed", data }]);
    expect(bench.events[0]?.event_id).toBe((body["event_ids"] as string[])[0]);
    expect(await bench.get("/sandbox/buyers/raw-1")).toMatchObject({ status: 404 });
  });

  test("share a webhook when they come as a list", async () => {
    const events = ["a", "b", "a"].map((id) => ({ event_id: id, type: "loan.granted", data: { id } }));
    expect((await bench.post("/sandbox/events", { events })).body).toEqual({ event_ids: ["a", "b", "a"] });
    await bench.sandbox.deliveries.idle();
    expect(bench.webhooks).toHaveLength(1);
    expect(bench.webhooks[0]).toMatchObject(events);
  });

  test("may say when they happened, to the nanosecond", async () => {
    const timestamp = "2024-01-02T03:04:05.123456789Z";
    await bench.post("/sandbox/events", { type: "t", data: {}, timestamp });
    await bench.sandbox.deliveries.idle();
    expect(bench.events).toMatchObject([{ timestamp }]);
  });
});

describe("deliveries", () => {
  test("are listed with their attempts, by state, event and number", async () => {
    const { body } = await bench.post("/sandbox/buyers/d-1/status", { status: "ACTIVE" });
    await bench.sandbox.deliveries.idle();
    const eventId = String(body["event_id"]);
    const listed = await bench.get(`/sandbox/deliveries?event_id=${eventId}&state=delivered`);
    expect(listed.body["deliveries"]).toMatchObject([
      { url: bench.receiverUrl, eventIds: [eventId], state: "delivered", attempts: [{ status: 200 }] },
    ]);
    const none = await bench.get(`/sandbox/deliveries?event_id=${eventId}&state=failed`);
    expect(none.body).toEqual({ deliveries: [], counts: { pending: 0, delivered: 1, failed: 0 } });
    const last = await bench.get("/sandbox/deliveries?limit=1");
    expect(last.body["deliveries"]).toHaveLength(1);
  });

  test("are sent again by a delivery, a webhook or an event, and no other way", async () => {
    const { body } = await bench.post("/sandbox/buyers/d-2/status", { status: "ACTIVE" });
    await bench.sandbox.deliveries.idle();
    const eventId = String(body["event_id"]);
    const [delivery] = bench.sandbox.deliveries.list({ eventId });
    for (const id of [String(delivery?.id), delivery?.webhookId, eventId]) {
      const again = await bench.post("/sandbox/deliveries/resend", { id });
      expect(again).toMatchObject({ status: 202, body: { deliveries: [{ id: delivery?.id }] } });
      await bench.sandbox.deliveries.idle();
    }
    expect(bench.sandbox.deliveries.list({ eventId })[0]?.attempts).toHaveLength(4);
  });
});

describe("payout confirmations", () => {
  test("are kept as received, each report for itself", async () => {
    const body = { idempotency_key: "op.a.b", status: "executed", anything: { else: [1.5, null] } };
    const first = await bench.post("/sandbox/confirmations", body);
    const again = await bench.post("/sandbox/confirmations", body);
    expect([first.status, again.status]).toEqual([201, 201]);
    expect(first.body).toEqual({
      confirmation_id: expect.any(Number),
      received_at: "2024-02-28T23:59:59.999Z",
      body,
    });
    const { confirmations } = (await bench.get("/sandbox/confirmations")).body;
    expect(confirmations).toEqual([first.body, again.body]);
    expect(bench.sandbox.confirmations()).toEqual([first.body, again.body]);
  });
});
