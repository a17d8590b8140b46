import { eventually, sleep } from "@countersign/test-support/runs/eventually.ts";
import { describe, expect, test } from "@jest/globals";
import { createOutcomeSender, type OutcomesOptions } from "countersign/outcomes";
import {
  changed,
  heard,
  openStores,
  outcomesOn,
  report,
  sentTo,
  settled,
  startService,
  status,
} from "./service.ts";

type DeadOutcome = Parameters<NonNullable<OutcomesOptions<never>["onDeadLetter"]>>[0];

type AnswerMeaning = ReturnType<NonNullable<OutcomesOptions<never>["answers"]>>;

const queue = "outcomes";
const id = settled.idempotencyKey;

describe("an answer of", () => {
  test.each<[number, string]>([
    [200, "done"],
    [202, "done"],
    [409, "done"],
    [400, "dead"],
    [404, "dead"],
    [410, "dead"],
    [413, "dead"],
    [415, "dead"],
    [422, "dead"],
    [302, "failed"],
    [401, "failed"],
    [403, "failed"],
    [408, "failed"],
    [429, "failed"],
    [500, "failed"],
    [503, "failed"],
  ])("%i ends the attempt as %s", async (code, outcome) => {
    const { attempts, service } = await sentTo([status(code, "", { location: "/elsewhere" })]);
    expect(attempts[0]).toBe(`${queue} ${outcome}`);
    expect(service.received.every(({ target }) => target === "/outcomes")).toBe(true);
  });

  test.each<[number, AnswerMeaning | "later", string]>([
    [200, "retry", "failed"],
    [500, "known", "done"],
    [503, "refused", "dead"],
    [200, "later", "failed"],
  ])("%i is what answers() says of it: %s", async (code, meaning, outcome) => {
    const { attempts } = await sentTo([status(code)], { answers: () => meaning as AnswerMeaning });
    expect(attempts[0]).toBe(`${queue} ${outcome}`);
  });
});

describe("the reason on the record", () => {
  const secret = "key-s3cret";
  test.each<[string, Parameters<typeof status>, RegExp]>([
    [
      "has the status and the beginning of the body",
      [500, "no\nledger"],
      /^the service answered 500: "no\\u000aledger"$/,
    ],
    ["has 1 KiB of it at most", [500, "x".repeat(100_000)], /^the service answered 500: "x{900,1024}"$/],
    ["names the option headers after 401", [401], /^the service answered 401 \(see the option headers\)$/],
    ["says that redirects are not followed", [307], /answered 307, a redirect, which is not followed/],
    [
      "hides a key that the service repeats",
      [500, `bad ${secret}`],
      /^the service answered 500: "bad \[redacted\]"$/,
    ],
    ["hides the URL's query", [500, "bad token=t0ken"], /^the service answered 500: "bad \[redacted\]"$/],
  ])("%s", async (_name, answer, reason) => {
    const service = await startService(status(...answer));
    const url = `${service.url}?token=t0ken`;
    const { codes, messages, record } = await sentTo([], { url, headers: { "x-api-key": secret } });
    expect(record?.failures[0]?.reason).toMatch(reason);
    expect(JSON.stringify([record, messages])).not.toMatch(/s3cret|t0ken/);
    expect(codes).toEqual(["outcome-not-sent"]);
  });

  test("is of the connection where none was made", async () => {
    const { record } = await sentTo([], { url: "http://127.0.0.1:1/outcomes?token=t0ken" });
    expect(record?.failures[0]?.reason).toMatch(/^the connection to the service failed or was lost/);
    expect(JSON.stringify(record)).not.toMatch(/t0ken/);
  });

  test("is of the time-out where no answer came", async () => {
    const { record } = await sentTo([() => {}], { timeoutMs: 30 });
    expect(record?.failures[0]?.reason).toBe("the attempt took longer than 30 ms");
  });

  test.each<[string, object, string]>([
    ["url()", { url: () => "http://elsewhere.example/" }, "what url() gave must be https"],
    [
      "headers()",
      { headers: () => ({ "x-api-key": "s3cret\nx" }) },
      "what headers() gave are no header fields",
    ],
    ["body()", { body: () => undefined }, "what body() gave is no JSON value"],
    ["an async body()", { body: () => Promise.resolve({ key: id }) }, "what body() gave is a promise"],
    ["a failed body()", { body: () => Promise.reject(new Error("no")) }, "what body() gave is a promise"],
    ["a failed headers()", { headers: () => Promise.reject(new Error("no vault")) }, "no vault"],
  ])("is of the option where %s gives what cannot be sent", async (_name, options, reason) => {
    const { record, service } = await sentTo([status(200)], options);
    const text = record?.failures[0]?.reason;
    expect(text).toContain(reason);
    expect(text).not.toMatch(/s3cret/);
    expect(service.received).toEqual([]);
  });
});

test("url(), headers() and body() see the outcome, for each attempt", async () => {
  const { stores, clock } = openStores();
  const { attempts } = heard();
  const service = await startService(status(401), status(200));
  const keys = ["key-1", "key-2"];
  const outcomes = outcomesOn(stores, {
    url: ({ idempotencyKey }) => new URL(`${service.url}/${idempotencyKey}`),
    method: "PUT",
    headers: () =>
      Promise.resolve({ "X-Api-Key": keys.shift() ?? "", "Content-Type": "application/vnd.outcome+json" }),
    body: (outcome) => ({ state: outcome.status, at: outcome.settledAt }),
  });
  outcomes.start();
  await report(stores, outcomes);
  await eventually(() => {
    clock.advance(10);
    return attempts.includes("outcomes done");
  });
  expect(service.received.map(({ headers }) => headers["x-api-key"])).toEqual(["key-1", "key-2"]);
  expect(service.received[1]).toMatchObject({
    method: "PUT",
    target: `/outcomes/${id}`,
    body: '{"state":"SETTLED","at":"2026-11-24T10:00:00.123Z"}',
  });
  expect(service.received[1]?.headers["content-type"]).toBe("application/vnd.outcome+json");
});

test.each([
  ["2", 2_000],
  ["3600", 10_000],
])("Retry-After: %s is waited for, up to maxBackoffMs", async (retryAfter, waitMs) => {
  const answer = status(503, "", { "retry-after": retryAfter });
  const { clock, record } = await sentTo([answer], { maxBackoffMs: 10_000 });
  expect(record?.dueAtMs).toBe(clock.now() + waitMs);
});

test("what was refused is a dead letter, and is sent when an operator retries it", async () => {
  const dead: DeadOutcome[] = [];
  const { stores, attempts, codes, service } = await sentTo([status(422, "unknown business"), status(200)], {
    onDeadLetter: (one) => void dead.push(one),
  });
  await eventually(() => dead.length > 0);
  expect(dead[0]).toMatchObject({
    outcome: { idempotencyKey: id, status: "SETTLED" },
    attempts: 1,
    reason: 'the service answered 422: "unknown business"',
  });
  await eventually(() => codes.length > 0);
  expect(codes).toEqual(["task-dead"]);
  expect(await stores.work.retry(queue, { ids: [id] })).toBe(1);
  await eventually(() => attempts.includes("outcomes done"));
  expect(service.received).toHaveLength(2);
});

test("attempts that are exhausted make a dead letter too", async () => {
  const { clock, attempts, service } = await sentTo([status(500)], { maxAttempts: 3 });
  await eventually(() => {
    clock.advance(10);
    return attempts.includes("outcomes dead");
  });
  expect(service.received).toHaveLength(3);
});

test("after a crash between answer and commit it is sent again, and 409 counts as sent", async () => {
  const { stores, clock } = openStores();
  const { attempts } = heard();
  const service = await startService(status(200), status(409));
  // The first process never comes to write that it was sent.
  const never = (): Promise<never> => new Promise(() => {});
  const transactions = changed(stores.transactions, { run: never });
  const work = changed(stores.work, { giveBack: never });
  const short = { storeTimeoutMs: 100, waitMs: 0 };
  const crashing = outcomesOn({ ...stores, transactions, work }, { url: service.url, ...short });
  crashing.start();
  await report(stores, crashing);
  await eventually(() => service.received.length === 1);
  await crashing.drain({ timeoutMs: 1 });
  clock.advance(30_000);
  const next = outcomesOn(stores, { url: service.url });
  next.start();
  await eventually(() => attempts.includes("outcomes done"));
  expect(service.received.map(({ body }) => body)).toEqual([
    service.received[0]?.body,
    service.received[0]?.body,
  ]);
  const record = await stores.work.read(queue, id);
  expect(record).toMatchObject({ state: "done", attempts: 2 });
  expect(record?.failures.map(({ reason }) => reason)).toEqual(["lease-expired"]);
});

test("two senders send each outcome once", async () => {
  const { stores } = openStores();
  const { attempts } = heard();
  const service = await startService((res) => void setTimeout(() => res.end(), 5));
  const senders = [
    outcomesOn(stores, { url: service.url }),
    outcomesOn(stores, { url: service.url }),
  ] as const;
  for (const sender of senders) sender.start();
  for (let number = 0; number < 30; number += 1) {
    // oxlint-disable-next-line no-await-in-loop -- each in a transaction of its own
    await report(stores, senders[0], { ...settled, idempotencyKey: `payout-${number}` });
  }
  await eventually(() => attempts.length === 30);
  await sleep(50);
  const sent = service.received.map(
    ({ body }) => (JSON.parse(body) as { idempotency_key: string }).idempotency_key,
  );
  expect(new Set(sent).size).toBe(30);
  expect(sent).toHaveLength(30);
});

test("drain() awaits the request that is under way, and sends no other", async () => {
  const { stores } = openStores();
  let answer = (): void => {};
  const service = await startService((res) => {
    answer = () => void res.end();
  });
  const outcomes = outcomesOn(stores, { url: service.url, concurrency: 1 });
  await report(stores, outcomes);
  await report(stores, outcomes, { ...settled, idempotencyKey: "later" });
  outcomes.start();
  await eventually(() => service.received.length === 1);
  const drained = outcomes.drain();
  answer();
  expect(await drained).toEqual({ keys: 0, claims: 0 });
  expect(service.received).toHaveLength(1);
  const [summary] = await stores.work.summaries();
  expect(summary).toMatchObject({ done: 1, open: 1, running: 0 });
});

describe("createOutcomeSender(), for a queue of your own", () => {
  const outcome = { ...settled, settledAt: "2026-03-01T10:00:00.000Z" };

  test.each([
    ["a Date", { ...settled, settledAt: new Date(outcome.settledAt) }],
    ["the text that JSON makes of it", outcome],
  ])("sends an outcome once, its time as %s", async (_form, given) => {
    const service = await startService(status(200));
    await createOutcomeSender({ url: service.url, headers: { "x-api-key": "k" } })(given);
    expect(service.received).toHaveLength(1);
    const [request] = service.received;
    expect(request?.headers["x-api-key"]).toBe("k");
    expect(JSON.parse(request?.body ?? "")).toMatchObject({
      idempotency_key: id,
      settled_at: outcome.settledAt,
    });
  });

  test.each<[number, Record<string, string>, object]>([
    [422, {}, { isFinal: true }],
    [401, {}, { isFinal: false, retryInMs: 0 }],
    [503, { "retry-after": "7" }, { isFinal: false, retryInMs: 7_000 }],
  ])("throws after %i what the queue is to do, and no secret", async (code, fields, expected) => {
    const service = await startService(status(code, "bad k-s3cret", fields));
    const sent = createOutcomeSender({ url: service.url, headers: { "x-api-key": "k-s3cret" } })(outcome);
    await expect(sent).rejects.toMatchObject({ name: "TaskError", ...expected });
    await expect(sent).rejects.not.toThrow(/s3cret/);
  });

  test("resolves when the service has it already", async () => {
    const service = await startService(status(409));
    await expect(createOutcomeSender({ url: service.url })(outcome)).resolves.toBeUndefined();
  });

  test("gives up when it is told to, and after its time", async () => {
    const service = await startService(() => {});
    const send = createOutcomeSender({ url: service.url, timeoutMs: 1000 });
    await expect(send(outcome)).rejects.toThrow(/1000 ms/);
    await expect(send(outcome, AbortSignal.abort(new Error("the process ends")))).rejects.toThrow();
    expect(service.received).toHaveLength(1);
  });

  test("refuses what the sender cannot use, at once", async () => {
    expect(() => createOutcomeSender({ url: "http://service.example/" })).toThrow(
      /createOutcomeSender.*https/,
    );
    expect(() => createOutcomeSender({ url: "https://a.example/", stores: 1 } as never)).toThrow(
      /unknown option stores/,
    );
    const send = createOutcomeSender({ url: "http://127.0.0.1:1/" });
    for (const settledAt of ["yesterday", null, 0]) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await expect(send({ ...outcome, settledAt } as never)).rejects.toThrow(
        /settledAt must be a valid Date/,
      );
    }
    await expect(send({ ...outcome, status: "" })).rejects.toThrow(/status must be a non-empty string/);
  });
});
