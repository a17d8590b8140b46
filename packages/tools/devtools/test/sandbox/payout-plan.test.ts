import { served } from "@countersign/test-support/servers/served.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { createPayoutInstruction, generateKeyPair } from "../../src/sandbox/index.ts";
import { payoutPlans, statuses, type PayoutVariant } from "../../src/internal.ts";
import type { PayoutPlanOptions } from "../../src/sandbox/payout-plan.ts";
import { startPlatform, type TestPlatform } from "./platform.ts";
import { parseStatusPatterns } from "../../src/sandbox/status.ts";

type PayoutReport = Awaited<ReturnType<typeof payoutPlans.run>>;

const pair = generateKeyPair();
let platform: TestPlatform;

beforeAll(async () => {
  platform = await startPlatform({ [pair.keyid]: pair.publicKeyPem });
});
beforeEach(() => {
  platform.received.length = 0;
});
afterAll(() => platform.close());

function optionsOf(changes: Partial<PayoutPlanOptions> = {}): PayoutPlanOptions {
  const body = createPayoutInstruction();
  return {
    request: { url: platform.url, body, privateKey: pair.privateKeyPem, keyid: pair.keyid },
    ...changes,
  };
}

const ran = (options: PayoutPlanOptions): Promise<PayoutReport> => payoutPlans.run(payoutPlans.make(options));

function statusesOf({ outcomes }: PayoutReport): (number | undefined)[] {
  return outcomes.map(({ answer }) => answer?.status);
}

function windowsAt(clock: () => number, variant: PayoutVariant): unknown[] {
  return payoutPlans.make(optionsOf({ variant, clock })).steps.map(({ build }) => {
    const { created, expires } = build().signature;
    return [created, expires];
  });
}

describe("runPayoutPlan against a platform that verifies on its own", () => {
  test.each<[PayoutVariant, number[], { signatureValid: boolean; digestValid: boolean }]>([
    ["plain", [200], { signatureValid: true, digestValid: true }],
    ["tamper-body", [401], { signatureValid: true, digestValid: false }],
    ["tamper-digest", [401], { signatureValid: false, digestValid: true }],
    ["tamper-signature", [401], { signatureValid: false, digestValid: true }],
    ["tamper-path", [401], { signatureValid: false, digestValid: true }],
    ["tamper-prefix-removed", [401], { signatureValid: false, digestValid: true }],
    ["tamper-prefix-added", [401], { signatureValid: false, digestValid: true }],
    ["tamper-charset-added", [401], { signatureValid: false, digestValid: true }],
    ["tamper-body-re-serialised", [401], { signatureValid: true, digestValid: false }],
    ["tamper-created-milliseconds", [401], { signatureValid: true, digestValid: true }],
    ["expired", [401], { signatureValid: true, digestValid: true }],
    ["future", [401], { signatureValid: true, digestValid: true }],
    ["replay", [200, 401], { signatureValid: true, digestValid: true }],
    ["duplicate", [200, 409], { signatureValid: true, digestValid: true }],
  ])("%s is answered %p and spoils only what it says", async (variant, expected, found) => {
    const report = await ran(optionsOf({ variant }));
    expect(statusesOf(report)).toEqual(expected);
    expect(report).toMatchObject({ variant, asExpected: true, reached: true });
    expect(platform.received.at(-1)).toMatchObject(found);
    expect(platform.received.every(({ target }) => target === "/api/v1/transaction")).toBe(true);
  });

  test("expired and future lie outside the window and the skew", () => {
    expect(windowsAt(() => 1_700_000_000, "plain")).toEqual([[1_700_000_000, 1_700_000_060]]);
    expect(windowsAt(() => 1_700_000_000, "expired")).toEqual([[1_699_999_880, 1_699_999_940]]);
    expect(windowsAt(() => 1_700_000_000, "future")).toEqual([[1_700_000_120, 1_700_000_180]]);
  });

  test("replay repeats the nonce; duplicate repeats the body under a fresh nonce", async () => {
    await ran(optionsOf({ variant: "replay" }));
    await ran(optionsOf({ variant: "duplicate" }));
    const [first, replay, paid, duplicate] = platform.received;
    expect(replay?.rawHeaders).toEqual(first?.rawHeaders);
    expect(duplicate?.body).toEqual(paid?.body);
    expect(duplicate?.params["nonce"]).not.toBe(paid?.params["nonce"]);
  });

  test("concurrent sends all at once and expects one acknowledgement", async () => {
    const report = await ran(optionsOf({ variant: "concurrent", count: 5 }));
    expect(statusesOf(report).filter((status) => status === 200)).toHaveLength(1);
    expect(statusesOf(report).filter((status) => status === 409)).toHaveLength(4);
    expect(new Set(platform.received.map(({ params }) => params["nonce"])).size).toBe(5);
    expect(report.asExpected).toBe(true);
  });

  test("concurrent is not as expected when nobody is acknowledged", async () => {
    const options = optionsOf();
    await ran(options);
    const report = await ran({ ...options, variant: "concurrent" });
    expect(statusesOf(report)).toEqual([409, 409]);
    expect(report.asExpected).toBe(false);
    const told = await payoutPlans.run(
      payoutPlans.make({ ...options, variant: "concurrent", expect: ["409"] }),
    );
    expect(told.asExpected).toBe(true);
  });

  test("expect judges the last request, the first of two stays 2xx", async () => {
    const replay = optionsOf({ variant: "replay", expect: ["200"] });
    expect((await ran(replay)).outcomes.map(({ asExpected }) => asExpected)).toEqual([true, false]);
    const spent = await ran({ ...replay, expect: ["409"] });
    expect(spent.outcomes.map(({ asExpected }) => asExpected)).toEqual([false, false]);
  });

  test("refuses an unknown variant", () => {
    expect(() => payoutPlans.make(optionsOf({ variant: "late" as "plain" }))).toThrow(TypeError);
  });
});

describe("runPayoutPlan against a platform that acknowledges everything", () => {
  test.each(payoutPlans.variants.slice(1))("$variant is not as expected", async ({ variant }) => {
    const url = `${await served((_req, res) => res.end())}/pay`;
    const { request } = optionsOf();
    const report = await ran({ request: { ...request, url }, variant });
    expect(report).toMatchObject({ asExpected: false, reached: true });
  });
});

describe("runPayoutPlan without a platform", () => {
  test("reports the error and does not go on to the second request", async () => {
    const { request } = optionsOf();
    const plan = payoutPlans.make({
      request: { ...request, url: "http://platform.invalid/pay" },
      variant: "duplicate",
    });
    const report = await payoutPlans.run(plan);
    expect(report).toMatchObject({ asExpected: false, reached: false });
    expect(report.outcomes).toHaveLength(1);
    expect(report.outcomes[0]).toMatchObject({ answer: undefined, error: { code: "host-not-found" } });
  });
});

describe("parseStatusPatterns", () => {
  test.each([
    ["200", ["200"]],
    ["200, 409", ["200", "409"]],
    ["2xx,503", ["2xx", "503"]],
  ])("reads %s", (text, patterns) => {
    expect(parseStatusPatterns(text)).toEqual(patterns);
  });

  test.each(["", "ok", "200,", "600", "20", "2x", "2000"])("refuses %p", (text) => {
    expect(parseStatusPatterns(text)).toBeUndefined();
  });
});

describe("matchesStatus", () => {
  test.each([
    [200, ["200"], true],
    [204, ["2xx"], true],
    [409, ["200", "409"], true],
    [200, [], false],
  ])("%d against %p is %p", (status, patterns, expected) => {
    expect(statuses.matches(status, patterns)).toBe(expected);
  });
});

describe("explainStatus", () => {
  test.each([
    [202, "acknowledged"],
    [302, "redirect"],
    [400, "validation error"],
    [401, "refused"],
    [409, "already processed"],
    [418, "no status that the payout interface knows"],
    [500, "retry with the same idempotency_key"],
    [503, "in doubt"],
  ])("%d", (status, meaning) => {
    expect(statuses.explain(status)).toContain(meaning);
  });

  test.each([
    [409, '{"code":"idempotency-key-reused"}', "not with this payload"],
    [409, '{"code":"in-flight"}', "still runs"],
    [409, '{"code":"already-processed"}', "already processed"],
    [503, '{"code":"held"}', "an operator of the platform decides"],
    [200, '{"code":"held"}', "acknowledged"],
    [409, '{"code":["in-flight","x"]}', "already processed"],
    [409, "null", "already processed"],
    [409, "", "already processed"],
    [409, "<html>", "already processed"],
  ])("%d with %s", (status, body, meaning) => {
    expect(statuses.explain(status, body)).toContain(meaning);
  });
});
