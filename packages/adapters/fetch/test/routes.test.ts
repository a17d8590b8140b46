import { GuardError } from "@countersign/core";
import { checkedRoute, idempotentRoute, payoutRoute, webhookRoute } from "@countersign/fetch";
import { memoryAnswerStore, memoryIdempotencyStore } from "@countersign/idempotency";
import { basicAuthVerifier } from "@countersign/webhook-basic-auth";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { describe, expect, test } from "@jest/globals";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";

const url = "https://platform.example/refunds";
const post = (body: string | ReadableStream | null = "{}", init: RequestInit = {}): Request =>
  new Request(url, { method: "POST", body, ...init });

function refunds(overrides: Partial<Parameters<typeof idempotentRoute>[0]> = {}) {
  const store = memoryIdempotencyStore({ max: 10 });
  const codes: unknown[] = [];
  const onReject = (error: unknown): void => void codes.push((error as GuardError).code);
  const options = { store, key: () => "key-1", waitMs: 0, onReject, ...overrides };
  return { options, store, codes, state: () => store.read("key-1")?.state ?? "free" };
}

describe("a route on options that are not there", () => {
  test.each([
    ["payoutRoute", () => payoutRoute({} as never, () => new Response())],
    ["payoutRoute without a handler", () => payoutRoute({} as never, undefined as never)],
    ["webhookRoute", () => webhookRoute({} as never)],
    ["idempotentRoute", () => idempotentRoute({} as never, () => new Response())],
    [
      "checkedRoute",
      () =>
        checkedRoute(
          { nam: "x" } as never,
          () => 1,
          () => new Response(),
        ),
    ],
  ])("throws: %s", (_name, make) => {
    expect(make).toThrow(TypeError);
  });
});

describe("idempotentRoute", () => {
  test("refuses hold() once its handler has responded: it would have no effect", async () => {
    const { options, state } = refunds();
    let hold: ((reason: string) => void) | undefined;
    const route = idempotentRoute(options, (_request, idempotency) => {
      hold = idempotency?.hold;
      return new Response("paid");
    });
    await route(post());
    expect(() => hold?.("sent to the bank")).toThrow("the response has ended already");
    expect(state()).toBe("done");
  });

  test("handles the very request again whose key could not be claimed", async () => {
    const { options, store } = refunds();
    const claim = store.claim.bind(store);
    let isAway = true;
    const away = Object.assign(store, {
      claim: (...call: Parameters<typeof store.claim>) => {
        if (isAway) throw new Error("away");
        return claim(...call);
      },
    });
    const route = idempotentRoute({ ...options, store: away }, () => new Response("paid"));
    const request = post();
    expect((await route(request)).status).toBe(503);
    isAway = false;
    expect((await route(request)).status).toBe(200);
  });

  test("tells of a missing key before anything is asked about its payload", async () => {
    const asked: string[] = [];
    const fingerprint = (): string => {
      asked.push("fingerprint");
      return "f";
    };
    const { options, codes } = refunds({ key: () => "", fingerprint });
    expect((await idempotentRoute(options, () => new Response())(post())).status).toBe(400);
    expect([codes, asked]).toEqual([["idempotency-key-missing"], []]);
  });

  test("answers 500, and holds its key, when the response of its handler cannot be read", async () => {
    const { options, state } = refunds();
    const route = idempotentRoute(options, () => {
      const response = new Response("paid");
      const headers = {
        [Symbol.iterator]: () => {
          throw new TypeError("no fields");
        },
      };
      return Object.defineProperty(response, "headers", { value: headers });
    });
    expect((await route(post())).status).toBe(500);
    expect(state()).toBe("held");
  });

  test("keeps the answer back until the key is recorded", async () => {
    const { options, store, state } = refunds();
    const complete = store.complete.bind(store);
    const slow = Object.assign(Object.create(store) as typeof store, {
      complete: async (key: string, token: string) => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        return complete(key, token);
      },
      claim: store.claim.bind(store),
    });
    const route = idempotentRoute({ ...options, store: slow }, () => new Response("paid"));
    await route(post());
    expect(state()).toBe("done");
  });

  describe.each(["hold", "rerun"] as const)("under %s, with replay or without", (recovery) => {
    test.each<[string, unknown]>([
      ["nothing", undefined],
      ["a text", "paid"],
      ["a row of a table", { id: 1, status: 200 }],
      ["a Response without headers", { status: 200, ok: true, body: null, clone: () => new Response() }],
      ["Response.error()", Response.error()],
    ])("holds the key of a handler that returns %s, and is 500", async (_title, returned) => {
      for (const replay of [undefined, { answers: memoryAnswerStore(), callers: "shared" as const }]) {
        const { options, codes, state } = refunds({ recovery, replay });
        let ran = 0;
        const route = idempotentRoute(options, () => {
          ran += 1;
          return returned as Response;
        });
        expect([(await route(post())).status, codes]).toEqual([500, ["handler-without-response"]]);
        expect([(await route(post())).status, state(), ran]).toEqual([503, "held", 1]);
      }
    });
  });

  test("answers 500 in the place of a 409 whose body is being read", async () => {
    const { options, state } = refunds();
    const route = idempotentRoute(options, () => {
      const response = new Response("conflict", { status: 409 });
      response.body?.getReader();
      return response;
    });
    expect((await route(post())).status).toBe(500);
    expect(state()).toBe("held");
    expectWarning(/^\[handler-answered-409\] .* key "key-1" has a handler that answers 409/);
  });

  test("stops waiting when the client leaves", async () => {
    const { options, store, codes } = refunds({ waitMs: 60_000 });
    store.claim("key-1", { token: "a", fingerprint: "b", leaseMs: 60_000, recovery: "hold" });
    const client = new AbortController();
    const answer = idempotentRoute(options, () => new Response())(post("{}", { signal: client.signal }));
    setTimeout(() => client.abort(), 10);
    expect((await answer).status).toBe(400);
    expect(codes).toEqual([]);
  });

  test("owns no key once it is drained", async () => {
    const { options, codes } = refunds();
    const route = idempotentRoute(options, () => new Response());
    await route.drain();
    const { status, headers } = await route(post());
    expect([status, headers.get("connection")]).toEqual([503, "close"]);
    expect(codes).toEqual(["draining"]);
  });
});

describe("the body of a Request", () => {
  const limited = { limit: 4 };

  test.each<[string, number, string, () => Request]>([
    [
      "over the limit by its own words",
      413,
      "body-too-large",
      () => post("1", { headers: { "Content-Length": "5" } }),
    ],
    [
      "shorter than announced",
      400,
      "body-length-mismatch",
      () => post("1", { headers: { "Content-Length": "2" } }),
    ],
    [
      "longer than announced",
      400,
      "body-length-mismatch",
      () => post("123", { headers: { "Content-Length": "2" } }),
    ],
    ["that is empty", 500, "fingerprint-missing", () => post(null)],
  ])("%s is %i %s", async (_title, status, code, request) => {
    const { options, codes } = refunds(limited);
    const response = await idempotentRoute(options, () => new Response())(request());
    expect([response.status, codes]).toEqual([status, [code]]);
  });

  test("that was read before is 500", async () => {
    const { options, codes } = refunds();
    const request = post();
    await request.text();
    expect((await idempotentRoute(options, () => new Response())(request)).status).toBe(500);
    expect(codes).toEqual(["body-already-consumed"]);
  });

  test("that somebody reads meanwhile is 500", async () => {
    const { options, codes } = refunds();
    const request = post();
    request.body?.getReader();
    expect((await idempotentRoute(options, () => new Response())(request)).status).toBe(500);
    expect(codes).toEqual(["body-already-consumed"]);
  });

  test("that breaks off is refused in silence", async () => {
    const { options, codes } = refunds();
    const broken = new ReadableStream({ pull: (controller) => controller.error(new Error("reset")) });
    const request = post(broken, { duplex: "half" });
    expect((await idempotentRoute(options, () => new Response())(request)).status).toBe(400);
    expect(codes).toEqual([]);
  });
});

describe("checkedRoute", () => {
  const verify = basicAuthVerifier<Request>(
    { credentials: [{ username: "u", password: "p" }] },
    "checkedRoute",
  );
  const route = checkedRoute(
    { name: "basicAuth" },
    (received, request) => verify(received, request),
    (_request, { username }) => new Response(username),
  );

  test("hands what the check found to the handler", async () => {
    const response = await route(post("", { headers: { Authorization: `Basic ${btoa("u:p")}` } }));
    expect(await response.text()).toBe("u");
  });

  test("answers what it throws", async () => {
    const response = await route(post());
    expect([response.status, response.headers.get("www-authenticate")]).toEqual([
      401,
      expect.stringContaining("Basic"),
    ]);
  });
});

test("a time-out around a route leaves the key with its handler until that has ended", async () => {
  let pay = (): void => {};
  const paid = new Promise<void>((resolve) => (pay = resolve));
  const store = memoryIdempotencyStore();
  const options = { store, key: () => "k", fingerprint: () => "f", waitMs: 0 };
  let ran = 0;
  const route = idempotentRoute(options, async () => {
    ran += 1;
    await paid;
    return new Response("paid");
  });
  const ask = (): Promise<Response> =>
    route(new Request("https://platform.example/pay", { method: "POST", body: "{}" }));
  const first = ask();
  await eventually(() => ran === 1);
  const timeOut = Promise.resolve(new Response(null, { status: 503 }));
  expect((await Promise.race([first, timeOut])).status).toBe(503);
  expect(store.read("k")).toMatchObject({ state: "running" });
  expect((await ask()).status).toBe(503);
  pay();
  expect((await first).status).toBe(200);
  expect((await ask()).status).toBe(409);
  expect(ran).toBe(1);
});

function refusedBy(options: { onReject: (error: unknown) => void; verdictId?: boolean }): Promise<Response> {
  const route = checkedRoute(
    { name: "exampleCheck", ...options },
    () => {
      throw new GuardError({ status: 401, code: "signature-missing", message: "no Signature field" });
    },
    () => new Response("never"),
  );
  return route(new Request("http://localhost/"));
}

test("a route tells the id of its verdict by option alone", async () => {
  const errors: unknown[] = [];
  const onReject = (error: unknown): void => void errors.push(error);
  const plain = await refusedBy({ onReject });
  expect(await plain.text()).toBe('{"type":"about:blank","title":"Unauthorized","status":401}');
  const telling = await refusedBy({ onReject, verdictId: true });
  const id = (errors[1] as GuardError).verdict?.id;
  expect(await telling.json()).toEqual({
    type: "about:blank",
    title: "Unauthorized",
    status: 401,
    instance: `urn:uuid:${id}`,
  });
});
