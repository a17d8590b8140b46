import { codeOf } from "@countersign/test-support/runs/code-of.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { OptionError } from "@countersign/core";
import { createOutcomes, type OutcomeReport } from "countersign/outcomes";
import { createTaskQueue } from "@countersign/idempotency/work";
import { describe, expect, test } from "@jest/globals";
import { changed, heard, openStores, outcomesOn, report, settled, startService, status } from "./service.ts";

const url = "https://api.service.example/outcomes?token=s3cret";

describe("createOutcomes() options", () => {
  test.each<[string, object, RegExp]>([
    ["no stores", { stores: undefined }, /option stores must be stores of your database/],
    ["no URL", { url: undefined }, /option url must be a string or a URL/],
    ["http to another host", { url: "http://api.service.example/s3cret" }, /option url must be https/],
    [
      "credentials in the URL",
      { url: "https://s3cret@api.service.example/" },
      /option url must be https:\/\/host\/path/,
    ],
    ["a method without a body", { method: "GET" }, /option method must be "POST", "PUT" or "PATCH"/],
    [
      "a header with a line break",
      { headers: { "x-api-key": "s3cret\r\nx: y" } },
      /option headers must be an object of header fields/,
    ],
    ["a header that is no text", { headers: { "x-api-key": undefined } }, /option headers must be an object/],
    ["headers that are text", { headers: "s3cret" }, /option headers must be an object/],
    ["a body that is no function", { body: {} }, /option body must be a function/],
    [
      "a time at whose end a done task may be forgotten",
      { expectWithinMs: 255_600_001 },
      /option expectWithinMs must be an integer from 1 to 255600000/,
    ],
    ["a queue's name of 56 characters", { queue: "q".repeat(56) }, /option queue must be 1 to 55 of a-z/],
    ["a misspelt option", { retries: 3 }, /unknown option retries/],
  ])("refuses %s, and shows no secret", (_name, given, message) => {
    const { stores } = openStores();
    const create = (): unknown => createOutcomes({ stores, url, ...given });
    expect(create).toThrow(TypeError);
    expect(create).toThrow(message);
    expect(create).not.toThrow(/s3cret/);
  });

  test.each(["outcomes", "outcomes-expected"])("refuses the queue of other tasks, %s", (queue) => {
    const { stores } = openStores();
    createTaskQueue({ stores, queue, exactlyOnce() {} });
    expect(() => createOutcomes({ stores, url })).toThrow(
      `createTaskQueue works on the queue ${queue} of these stores already`,
    );
    expect(() => createOutcomes({ stores, url, queue: "payouts" })).not.toThrow();
    expect(() => createTaskQueue({ stores, queue: "payouts", exactlyOnce() {} })).toThrow(OptionError);
    // As another process has it.
    expect(() => createOutcomes({ stores, url, queue: "payouts" })).not.toThrow();
  });

  test("refuses a process that verifies no certificates", () => {
    const { stores } = openStores();
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
    try {
      expect(() => createOutcomes({ stores, url })).toThrow(/NODE_TLS_REJECT_UNAUTHORIZED=0/);
    } finally {
      delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
    }
  });
});

describe("report()", () => {
  test("sends the outcome of a committed transaction, and none of one that is rolled back", async () => {
    const { stores } = openStores();
    const { attempts } = heard();
    const service = await startService(status(200));
    const outcomes = outcomesOn(stores, { url: service.url, headers: { "X-Api-Key": "key-1" } });
    outcomes.start();
    const rolledBack = stores.transactions.run((tx) => {
      outcomes.report(tx, { ...settled, idempotencyKey: "rolled-back" });
      throw new Error("no such payout");
    });
    await expect(rolledBack).rejects.toThrow("no such payout");
    await report(stores, outcomes);
    await eventually(() => attempts.length > 0);
    expect(attempts).toEqual(["outcomes done"]);
    expect(service.received).toHaveLength(1);
    const [request] = service.received;
    expect(request).toMatchObject({ method: "POST", target: "/outcomes" });
    expect(request?.headers).toMatchObject({ "content-type": "application/json", "x-api-key": "key-1" });
    expect(JSON.parse(request?.body ?? "")).toEqual({
      idempotency_key: "payout-1.funding-1.business-1",
      business_id: "biz_1",
      status: "SETTLED",
      settled_at: "2026-11-24T10:00:00.123Z",
    });
  });

  test("changes nothing the second time, in whatever order the members stand", async () => {
    const { stores } = openStores();
    const outcomes = outcomesOn(stores, { url });
    const { settledAt, ...rest } = { ...settled, fee: { amount: "1.10", currency: "EUR" } };
    await report(stores, outcomes, { settledAt, ...rest });
    await report(stores, outcomes, {
      ...rest,
      settledAt: new Date(settledAt),
      fee: { currency: "EUR", amount: "1.10" },
    });
    expect((await stores.work.list({ queue: "outcomes", limit: 10 })).tasks).toHaveLength(1);
  });

  test.each<[string, Partial<OutcomeReport>]>([
    ["status", { status: "FAILED" }],
    ["time", { settledAt: new Date("2026-11-24T10:00:00.124Z") }],
    ["reason", { reason: "account closed" }],
    ["further member", { business_id: "biz_2" }],
  ])("refuses an outcome with another %s, so that its transaction rolls back", async (_name, other) => {
    const { stores } = openStores();
    const outcomes = outcomesOn(stores, { url });
    await report(stores, outcomes);
    expect(await codeOf(() => report(stores, outcomes, { ...settled, ...other }))).toBe(
      "500 outcome-differs",
    );
    const kept = await stores.work.read("outcomes", settled.idempotencyKey);
    expect(JSON.parse(kept?.body ?? "")).toMatchObject({ status: "SETTLED", business_id: "biz_1" });
  });

  test("keeps further members as they were given", async () => {
    const { stores } = openStores();
    const service = await startService(status(200));
    const seen: unknown[] = [];
    const outcomes = outcomesOn(stores, {
      url: service.url,
      body(outcome) {
        seen.push(outcome);
        return outcome;
      },
    });
    outcomes.start();
    const members = {
      amount: "10.10",
      fee: 0.1,
      paid: true,
      notes: ["é\u0000", null, { a: "\ud800" }],
      left: undefined,
    };
    await report(stores, outcomes, { ...settled, ...members });
    await eventually(() => service.received.length > 0);
    const { left: _left, ...kept } = members;
    const { settledAt } = settled;
    expect(seen).toEqual([{ ...settled, settledAt: settledAt.toISOString(), ...kept }]);
    expect(JSON.parse(service.received[0]?.body ?? "")).toEqual(seen[0]);
  });

  test("answers with a promise where transactions are asynchronous", async () => {
    const { stores } = openStores();
    const kept: string[] = [];
    const work = changed<object>(stores.work, {
      mode: "async",
      add(_tx: unknown, _queue: string, [task]: readonly { readonly body: string }[]) {
        kept.push(task?.body ?? "");
        const [first = ""] = kept;
        return Promise.resolve([kept.length === 1 ? { status: "added" } : { status: "known", body: first }]);
      },
    });
    const outcomes = createOutcomes<object, "async">({ stores: { ...stores, work } as never, url });
    await expect(outcomes.report({}, settled)).resolves.toBeUndefined();
    await expect(outcomes.report({}, settled)).resolves.toBeUndefined();
    const other = outcomes.report({}, { ...settled, status: "FAILED" });
    expect(await codeOf(() => other)).toBe("500 outcome-differs");
  });

  test.each<[string, object, RegExp]>([
    ["no key", { idempotencyKey: undefined }, /idempotencyKey must be a non-empty string/],
    ["no status", { status: "" }, /status must be a non-empty string/],
    ["a reason that is an error", { reason: new Error("no") }, /reason must be a non-empty string/],
    ["a time that is text", { settledAt: "2026-11-24" }, /settledAt must be a valid Date/],
    ["a time that is none", { settledAt: new Date("soon") }, /settledAt must be a valid Date/],
    ["an amount of cents as a bigint", { amount: 10n }, /the outcome\.amount must be a JSON value/],
    ["a number that JSON cannot hold", { amount: Number.NaN }, /the outcome\.amount must be a JSON value/],
    ["a further Date", { booking: { at: new Date() } }, /the outcome\.booking\.at must be a JSON value/],
    ["an undefined item", { notes: [undefined] }, /the outcome\.notes\[0\] must be a JSON value/],
    [
      "a key that is too long",
      { idempotencyKey: "k".repeat(513) },
      /id must be a string of 1 to 512 characters/,
    ],
  ])("refuses %s", async (_name, wrong, message) => {
    const { stores } = openStores();
    const outcomes = outcomesOn(stores, { url });
    const reported = report(stores, outcomes, { ...settled, ...wrong });
    await expect(reported).rejects.toThrow(TypeError);
    await expect(report(stores, outcomes, { ...settled, ...wrong })).rejects.toThrow(message);
  });
});

describe("expect()", () => {
  test("throws without expectWithinMs", async () => {
    const { stores } = openStores();
    const outcomes = outcomesOn(stores, { url });
    const expected = stores.transactions.run((tx) => outcomes.expect(tx, settled));
    await expect(expected).rejects.toThrow(/give createOutcomes\(\) the option expectWithinMs/);
  });

  test("tells of an outcome that is overdue, and again until it is reported", async () => {
    const { stores, clock } = openStores();
    const { codes, messages, attempts } = heard();
    const service = await startService(status(200));
    const overdue: string[] = [];
    const onOverdue = ({ idempotencyKey }: { idempotencyKey: string }): void =>
      void overdue.push(idempotencyKey);
    const outcomes = outcomesOn(stores, { url: service.url, expectWithinMs: 60_000, onOverdue });
    outcomes.start();
    await stores.transactions.run((tx) => {
      outcomes.expect(tx, settled);
      outcomes.expect(tx, settled);
      outcomes.expect(tx, { idempotencyKey: "reported" });
      outcomes.report(tx, { idempotencyKey: "reported", status: "FAILED", reason: "account closed" });
    });
    clock.advance(59_999);
    await eventually(() => attempts.includes("outcomes done"));
    expect(overdue).toEqual([]);
    clock.advance(1);
    await eventually(() => overdue.length === 1);
    clock.advance(60_000);
    await eventually(() => overdue.length === 2);
    await report(stores, outcomes);
    clock.advance(60_000);
    await eventually(() => attempts.filter((attempt) => attempt === "outcomes-expected done").length === 2);
    expect(new Set(overdue)).toEqual(new Set([settled.idempotencyKey]));
    expect(codes).toEqual(["outcome-overdue", "outcome-overdue"]);
    expect(messages[0]).toMatch(
      /^no outcome of the payout "payout-1\.funding-1\.business-1" was reported within 60000 ms$/,
    );
  });

  test("a look that cannot be answered is no alarm", async () => {
    const { stores, clock } = openStores();
    const { codes } = heard();
    const read = (): Promise<never> => Promise.reject(new Error("connection lost"));
    const work = changed(stores.work, { read });
    const outcomes = outcomesOn({ ...stores, work }, { url, expectWithinMs: 1 });
    outcomes.start();
    await stores.transactions.run((tx) => outcomes.expect(tx, settled));
    clock.advance(1);
    await eventually(async () => {
      const record = await stores.work.read("outcomes-expected", settled.idempotencyKey);
      return (record?.failures.length ?? 0) > 0;
    });
    expect(codes).not.toContain("outcome-overdue");
  });
});
