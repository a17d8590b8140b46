// A check as a hook of each of Fastify's stages, of a route and of the app, and what is no hook.
import type { AddressInfo } from "node:net";
import { hook, receivedRequest, refusal } from "@countersign/fastify";
import { basicAuthVerifier } from "@countersign/webhook-basic-auth";
import { contentDigest } from "@countersign/content-digest";
import { GuardError } from "@countersign/core";
import { ipAllowlist } from "@countersign/ip-allowlist";
import { readBody } from "@countersign/raw-body";
import { afterTest } from "../support/runs/after-test.ts";
import { signPayloadHeaders, payloadVerifier, webhookHmac } from "@countersign/webhook-hmac";
import { describe, expect, test } from "@jest/globals";
import { fastify, type FastifyInstance } from "fastify";

const secret = "0123456789abcdef0123456789abcdef";
const text = '{"a":"é😀"}';
const body = Buffer.from(text);
const headers = {
  "Content-Type": "application/json",
  ...signPayloadHeaders(body, secret, { scheme: "github" }),
};
const verify = payloadVerifier({ scheme: "github", secret });
const checks = {
  payloadVerifier: hook(
    "webhookHmac",
    async (request) => void (await verify(receivedRequest(request), request)),
    refusal({}),
  ),
  "a check of the app's own": hook(
    "ownCheck",
    async (request) => {
      const bytes = await readBody(receivedRequest(request), 1_000);
      if (bytes.equals(body)) return;
      throw new GuardError({ status: 401, code: "own-check", message: "another body" });
    },
    refusal({}),
  ),
};
const early = ["onRequest", "preParsing"] as const;
const late = ["preValidation", "preHandler"] as const;
type Stage = (typeof early)[number] | (typeof late)[number];
type AnyHook = (...given: never[]) => unknown;

const places: Readonly<Record<string, (app: FastifyInstance, stage: Stage, check: AnyHook) => void>> = {
  "of the route": (app, stage, check) => {
    app.post("/", { [stage]: check, handler: (request) => ({ got: request.body }) });
  },
  "among others of the route": (app, stage, check) => {
    const other = async (): Promise<void> => {};
    app.post("/", { [stage]: [other, check, other], handler: (request) => ({ got: request.body }) });
  },
  "of the app": (app, stage, check) => {
    app.addHook(stage as "onRequest", check as never);
    app.post("/", (request) => ({ got: request.body }));
  },
};

async function answerOf(
  mount: (app: FastifyInstance) => void,
  sent: string = text,
): Promise<{
  readonly status: number;
  readonly answer: { readonly got?: unknown; readonly message?: string };
}> {
  const app = fastify();
  mount(app);
  afterTest(() => app.close());
  await app.listen({ port: 0, host: "127.0.0.1" });
  const { port } = app.server.address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body: sent, headers });
  return { status: response.status, answer: JSON.parse(await response.text()) as object };
}

describe.each(Object.keys(places))("a hook %s", (place) => {
  const mounted =
    (stage: Stage, check: AnyHook) =>
    (app: FastifyInstance): void =>
      places[place]?.(app, stage, check);

  describe.each(Object.entries(checks))("with %s", (_check, check) => {
    test.each(early)(
      "in %s lets Fastify's parser read the checked bytes, and refuses others",
      async (stage) => {
        expect(await answerOf(mounted(stage, check))).toEqual({ status: 200, answer: { got: { a: "é😀" } } });
        const refused = await answerOf(mounted(stage, check), text.replace("é", "e"));
        expect(refused).toEqual({
          status: 401,
          answer: { type: "about:blank", title: "Unauthorized", status: 401 },
        });
      },
    );

    test.each(late)("in %s answers 500, whoever asks", async (stage) => {
      const answer = { type: "about:blank", title: "Internal Server Error", status: 500 };
      expect(await answerOf(mounted(stage, check))).toEqual({ status: 500, answer });
      expect(await answerOf(mounted(stage, check), "{}")).toEqual({ status: 500, answer });
    });
  });

  test.each([...early, ...late])("in %s runs a check that reads no body", async (stage) => {
    const verifyCredentials = basicAuthVerifier(
      { username: "service", password: "test-password" },
      "basicAuth",
    );
    const check = hook(
      "basicAuth",
      async (request) => void (await verifyCredentials(receivedRequest(request), request)),
      refusal({}),
    );
    expect((await answerOf(mounted(stage, check))).status).toBe(401);
    const open = hook("open", () => undefined, refusal({}));
    expect(await answerOf(mounted(stage, open))).toMatchObject({
      status: 200,
      answer: { got: { a: "é😀" } },
    });
  });

  test.each(late)("in %s runs a check whose bytes a hook in onRequest has captured", async (stage) => {
    const { status } = await answerOf((app) => {
      app.addHook("onRequest", checks["a check of the app's own"]);
      mounted(stage, checks.payloadVerifier)(app);
    });
    expect(status).toBe(200);
  });

  test.each(late)(
    "in %s tells Fastify's remedy, without refusal(), to the app's error handler",
    async (stage) => {
      const check = hook(
        "webhookHmac",
        async (request) => void (await verify(receivedRequest(request), request)),
      );
      const { status, answer } = await answerOf(mounted(stage, check));
      expect(status).toBe(500);
      expect(answer).toMatchObject({
        code: "body-already-consumed",
        message: expect.stringMatching(/hook\(\) to the route as onRequest or preParsing/),
      });
    },
  );

  describe.each([
    ["webhookHmac()", "webhookHmac", webhookHmac({ scheme: "github", secret })],
    ["contentDigest()", "contentDigest", contentDigest()],
    // By its members Fastify's request could pass for Express's.
    ["ipAllowlist()", "ipAllowlist", ipAllowlist({ allow: ["127.0.0.1"] })],
  ])("that is the middleware %s", (_title, name, middleware) => {
    test.each([...early, ...late])("in %s refuses every request, and says what to write", async (stage) => {
      const { status, answer } = await answerOf(mounted(stage, middleware));
      expect(status).toBe(500);
      expect(answer.message).toMatch(
        new RegExp(`^${name}Middleware got Fastify's request, .*: write hook\\(\\)`),
      );
    });
  });

  test.each([...early, ...late])("that is the check itself in %s says what to give it", async (stage) => {
    const { status, answer } = await answerOf(
      mounted(stage, async (request: never) => void (await verify(request, request))),
    );
    expect(status).toBe(500);
    expect(answer.message).toMatch(/give it receivedRequest\(request\) of the adapter$/);
  });
});
