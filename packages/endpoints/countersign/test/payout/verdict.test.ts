import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { guardChannelName, isGuardError, type GuardError, type GuardEvent } from "@countersign/core";
import { importVerificationKey, type VerificationKey } from "@countersign/http-message-signatures";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import express from "express";
import { payoutBody } from "./payout-body.ts";
import { path, platformOn, send, signer } from "./platform.ts";
import { createHandSigner, signByHand } from "./sign-by-hand.ts";

const bodyText = JSON.stringify(payoutBody);
const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;
const stranger = createHandSigner(signer.keyid);

function mismatched(): Record<string, string> {
  return { ...signByHand(stranger, { path, body: bodyText }) };
}

async function eventsOf(work: () => Promise<unknown>): Promise<GuardEvent[]> {
  const events: GuardEvent[] = [];
  const onEvent = (event: unknown): void => void events.push(event as GuardEvent);
  subscribe(guardChannelName, onEvent);
  try {
    await work();
  } finally {
    unsubscribe(guardChannelName, onEvent);
  }
  return events;
}

describe("the verdicts of a payout", () => {
  test.each<[string, () => unknown, readonly [string, string][]]>([
    [
      "found",
      () => true,
      [
        ["findBusiness", "pass"],
        ["idempotencyGuard", "pass"],
      ],
    ],
    // Asked before the claim, it counts after it.
    [
      "unknown",
      () => false,
      [
        ["idempotencyGuard", "pass"],
        ["findBusiness", "reject"],
      ],
    ],
  ])("tell of a business that is %s once", async (_what, findBusiness, last) => {
    const { app } = platformOn(express, { findBusiness: findBusiness as () => boolean });
    const events = await eventsOf(() => send(app));
    expect(events.map(({ guard, outcome }) => [guard, outcome]).slice(5)).toEqual(last);
  });

  test("each have an id of their own, and what was found so far", async () => {
    const { app } = platformOn(express, { signature: { keys: { [signer.keyid]: keyOf("tenant-1") } } });
    const events = await eventsOf(() => send(app).expect(200));
    expect(events.map(({ guard, outcome }) => [guard, outcome])).toEqual([
      ["ipAllowlist", "pass"],
      ["httpSignatureVerify", "pass"],
      ["payoutRequest", "pass"],
      ["jsonBody", "pass"],
      ["readPayout", "pass"],
      ["idempotencyGuard", "pass"],
    ]);
    for (const { id } of events) expect(id).toMatch(uuid);
    expect(new Set(events.map(({ id }) => id)).size).toBe(6);
    const [address, signature, , , , claim] = events;
    expect(address?.keyid).toBeUndefined();
    expect(signature).toMatchObject({
      keyid: signer.keyid,
      label: "sig1",
      subject: "tenant-1",
      created: expect.any(Number),
      components: ["@method", "@path", "content-type", "content-digest"],
      storeMs: expect.any(Number),
    });
    expect(Math.abs(signature?.ageSeconds ?? Infinity)).toBeLessThan(30);
    expect(claim).toMatchObject({
      keyid: signer.keyid,
      idempotencyKey: "payout:op_1.acc_from.acc_to",
      storeMs: expect.any(Number),
    });
    expect(events.map(({ storeMs }) => storeMs !== undefined)).toEqual([
      false,
      true,
      false,
      false,
      false,
      true,
    ]);
  });

  test("are on the error too, the same record, also when nobody listens", async () => {
    const errors: unknown[] = [];
    const { app } = platformOn(express, { onReject: (error) => void errors.push(error) });
    const [event] = (await eventsOf(() => send(app, bodyText, mismatched()).expect(401))).slice(-1);
    await send(app, bodyText, mismatched()).expect(401);
    const [heard, unheard] = errors.map((error) => (isGuardError(error) ? error.verdict : undefined));
    const { req: _req, error: _error, ...record } = event as GuardEvent;
    expect(heard).toEqual(record);
    expect(heard?.durationMs).toEqual(expect.any(Number));
    expect(unheard).toMatchObject({
      guard: "httpSignatureVerify",
      code: "signature-mismatch",
      status: 401,
      keyid: signer.keyid,
      durationMs: undefined,
    });
    expect(unheard?.id).toMatch(uuid);
    expect(unheard?.id).not.toBe(heard?.id);
    expect(JSON.stringify(errors[0])).not.toContain(heard?.id);
  });

  test("have the key and the signature of a claim that is refused when nobody listens", async () => {
    const errors: unknown[] = [];
    const { app } = platformOn(express, { onReject: (error) => void errors.push(error) });
    await send(app).expect(200);
    await send(app).expect(409);
    expect((errors[0] as GuardError).verdict).toMatchObject({
      guard: "idempotencyGuard",
      keyid: signer.keyid,
      idempotencyKey: "payout:op_1.acc_from.acc_to",
    });
  });

  test("hold no more of a stranger's text than fits into a log", async () => {
    const keyid = `k${"x".repeat(5_000)}`;
    const { app } = platformOn(express);
    const headers = { ...signByHand(createHandSigner(keyid), { path, body: bodyText }) };
    const events = await eventsOf(() => send(app, bodyText, headers).expect(401));
    const { keyid: told = "", components = [] } = events.at(-1) as GuardEvent;
    expect(told.length).toBeLessThanOrEqual(259);
    expect([told, ...components].join("")).toMatch(/^[\x20-\x7e]*$/);
  });
});

function keyOf(subject: string): VerificationKey {
  return importVerificationKey(signer.keyid, signer.publicKeyPem, { subject });
}

describe("the id in an answer", () => {
  const told: string[] = [];

  test("is there by option alone, and nothing else of a 401 changes", async () => {
    const plain = platformOn(express).app;
    const telling = platformOn(express, { verdictId: true }).app;
    const bare = await send(plain, bodyText, mismatched()).expect(401);
    expect(bare.text).toBe('{"type":"about:blank","title":"Unauthorized","status":401}');
    const errors = await eventsOf(async () => {
      const refusals = [
        mismatched(),
        {},
        { ...signByHand(createHandSigner("nobody"), { path, body: bodyText }) },
      ];
      for (const headers of refusals) {
        const { text } = await send(telling, bodyText, headers).expect(401);
        const { instance, ...rest } = JSON.parse(text);
        expect(instance).toMatch(/^urn:uuid:[\da-f-]{36}$/);
        expect(JSON.stringify(rest)).toBe(bare.text);
        told.push(instance.slice("urn:uuid:".length));
      }
    });
    expect(errors.filter(({ outcome }) => outcome !== "pass").map(({ id }) => id)).toEqual(told);
  });

  test("stands beside the code of another refusal", async () => {
    const { app } = platformOn(express, { verdictId: true });
    await send(app).expect(200);
    const { body } = await send(app).expect(409);
    expect(body).toMatchObject({ code: "already-processed", instance: expect.stringMatching(/^urn:uuid:/) });
  });

  test("has no effect where the app answers, which the option says", () => {
    expect(() => platformOn(express, { errors: "forward", verdictId: true })).toThrow(
      /verdictId has no effect/,
    );
  });
});

describe("the line of a refusal on stderr", () => {
  const consoleError = jest.spyOn(console, "error");

  beforeEach(() => {
    delete process.env["COUNTERSIGN_STDERR"];
    consoleError.mockReset().mockImplementation(() => undefined);
  });

  afterEach(() => {
    process.env["COUNTERSIGN_STDERR"] = "off";
    consoleError.mockReset();
  });

  // Without an onReject, who would have heard of it.
  const appOf = (options: { verdictId: boolean }) =>
    platformOn(express, { ...options, onReject: undefined as never }).app;

  test("says whose signature it was, and how old", async () => {
    await send(appOf({ verdictId: false }), bodyText, mismatched()).expect(401);
    const [[line]] = consoleError.mock.calls as [[string]];
    expect(line).toMatch(
      /; keyid "lender-1", label "sig1", created [\d.]+ s (ago|ahead of this clock); see \S+#signature-mismatch$/,
    );
    expect(line).not.toContain("verdict");
  });

  test("has the id that the caller was told", async () => {
    const { body } = await send(appOf({ verdictId: true }), bodyText, mismatched()).expect(401);
    const [[line]] = consoleError.mock.calls as [[string]];
    expect(line).toContain(`, verdict ${body.instance.slice("urn:uuid:".length)}; see `);
  });

  test("names the key of a payout that could not be claimed", async () => {
    const store = memoryIdempotencyStore();
    store.close();
    await send(platformOn(express, { idempotency: { store }, onReject: undefined as never }).app).expect(503);
    const [[line]] = consoleError.mock.calls as [[string]];
    expect(line).toContain('; keyid "lender-1", label "sig1", key "payout:op_1.acc_from.acc_to"; see ');
  });
});

test("a value that is no boolean is refused", () => {
  expect(() => platformOn(express, { verdictId: "yes" as never })).toThrow(/verdictId/);
});
