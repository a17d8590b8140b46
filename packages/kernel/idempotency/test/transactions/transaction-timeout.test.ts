import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { describe, expect } from "@jest/globals";
import { GuardError, noticeChannelName, type GuardNotice } from "@countersign/core";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { eventually, sleep } from "@countersign/test-support/runs/eventually.ts";
import { steadyTest as test } from "@countersign/test-support/runs/steadily.ts";
import { is, scripted, type Step } from "./scripted.ts";

const boom = new Error("boom");
const refusal = new GuardError({ status: 400, code: "account-frozen", message: "no" });

/** What the first call of a step does; later ones answer at once. */
type Firsts = Partial<Record<Step, () => unknown>>;

const never = () => new Promise<never>(() => {});
const fails = (fault: Error) => () => fault;

function slow(firsts: Firsts) {
  const script = Object.fromEntries(
    Object.entries(firsts).map(([step, first]) => [
      step,
      (call: number) => (call === 1 ? first() : undefined),
    ]),
  );
  return scripted(script, { storeTimeoutMs: 20, transactionTimeoutMs: 200 });
}

const endOf = (run: () => Promise<unknown>): Promise<unknown> => run().catch((error: unknown) => error);

const ways: readonly [string, () => Promise<unknown>][] = [
  ["succeeds", () => Promise.resolve()],
  ["fails", () => Promise.reject(boom)],
  ["meets a conflict", () => Promise.reject(is("conflict")())],
];

function deferred() {
  let resolve = (): void => {};
  const promise = new Promise<void>((settle) => (resolve = settle));
  return { promise, resolve };
}

/** The codes of the notices that follow in this test. */
function collectCodes(): readonly string[] {
  const codes: string[] = [];
  const hear = (notice: unknown): void => void codes.push((notice as GuardNotice).code);
  subscribe(noticeChannelName, hear);
  afterTest(() => unsubscribe(noticeChannelName, hear));
  return codes;
}

/** Rejections of which nobody hears while `work` runs. */
async function unheard(work: () => Promise<void>): Promise<readonly unknown[]> {
  const rejections: unknown[] = [];
  const listener = (error: unknown) => rejections.push(error);
  process.on("unhandledRejection", listener);
  try {
    await work();
    await sleep(300);
  } finally {
    process.off("unhandledRejection", listener);
  }
  return rejections;
}

test("the lease of what commits too early ends later than any handler can write", async () => {
  const { run, claims } = slow({});
  await run();
  expect(claims).toHaveLength(1);
  expect(claims[0]?.leaseMs).toBeGreaterThan(200);
});

describe("a transaction that takes longer than transactionTimeoutMs", () => {
  test.each<[string, Firsts, string]>([
    ["a handler", { work: never }, "transaction-timed-out"],
    ["the last statement behind it", { keep: never }, "transaction-timed-out"],
    [
      "the look at a transaction that has failed",
      { work: fails(boom), probe: never },
      "transaction-timed-out",
    ],
    ["the look after a rollback", { work: fails(boom), hold: never }, "transaction-unknown"],
    ["the look after a conflict", { work: fails(is("conflict")()), hold: never }, "transaction-unknown"],
    [
      "the look after a COMMIT that was refused",
      { commit: fails(is("refused")()), hold: never },
      "transaction-unknown",
    ],
    ["COMMIT", { commit: never }, "commit-unknown"],
  ])("is 503 when %s never ends, and leaves its lane and drain()", async (_what, script, code) => {
    const { owner, run, log } = slow(script);
    const retry = { "Retry-After": "7" };
    expect(await endOf(run)).toMatchObject({ status: 503, code, headers: retry });
    // A duplicate waits in the database for the row, not here.
    expect(await run()).toBe("paid");
    expect(log.filter((step) => step === "begin")).toHaveLength(2);
    expect(await owner.drain(0)).toBe(0);
  });

  test("throws the handler's error when the nonce of a rolled back request is never claimed", async () => {
    const { run, owner } = slow({ work: fails(boom), claim: never });
    expect(await endOf(run)).toBe(boom);
    expect(await owner.drain(0)).toBe(0);
  });

  test("refuses nobody for good when the nonce of a rolled back request is never claimed", async () => {
    const { run } = slow({ work: fails(refusal), claim: never });
    expect(await endOf(run)).toMatchObject({ status: 503, code: "transaction-unavailable" });
  });

  test.each(ways)(
    "commits nothing of a handler that %s too late, and begins nothing again",
    async (_way, ends) => {
      const late = deferred();
      const { run, log, gate } = slow({ work: () => late.promise.then(ends) });
      const rejections = await unheard(async () => {
        expect(await endOf(run)).toMatchObject({ code: "transaction-timed-out" });
        expect(gate).toEqual(["open", "close, failed"]);
        // The connection is back although the handler goes on.
        await eventually(() => log.includes("hold"));
        late.resolve();
      });
      expect(log).toEqual(["connect", "begin", "work", "rollback", "claim", "hold"]);
      // From its time-out on, not only from its end.
      expect(gate).toEqual(["open", "close, failed"]);
      expect(rejections).toEqual([]);
    },
  );

  test.each<[string, () => unknown, string[]]>([
    ["held", () => "held", ["transaction-held"]],
    ["not known", () => boom, ["transaction-unknown"]],
    ["free", () => undefined, []],
  ])("tells an operator of a key that is %s behind its time-out", async (_state, hold, told) => {
    const codes = collectCodes();
    const { run, log } = slow({ work: never, hold });
    expect(await endOf(run)).toMatchObject({ code: "transaction-timed-out" });
    await eventually(() => log.includes("hold"));
    await sleep(20);
    expect(codes).toEqual(told);
  });

  // The step begins in the middle of the time, and so has a second more than the whole.
  test.each<[string, Step, () => unknown]>([
    ["the last statement", "keep", () => 1_000],
    [
      "the look at a transaction that has failed",
      "probe",
      () => sleep(1_000).then(() => Promise.reject(boom)),
    ],
  ])("rolls back only after %s has ended: it may be several statements", async (_what, step, work) => {
    const late = deferred();
    const { run, log } = scripted({ work, [step]: () => late.promise }, { transactionTimeoutMs: 2_000 });
    expect(await endOf(run)).toMatchObject({ code: "transaction-timed-out" });
    await sleep(50);
    expect(log).toEqual(["connect", "begin", "work", step]);
    late.resolve();
    await eventually(() => log.includes("rollback"));
  });

  test.each(ways)("never repeats a COMMIT that %s too late", async (_way, ends) => {
    const late = deferred();
    const { run, log } = slow({ commit: () => late.promise.then(ends) });
    const rejections = await unheard(async () => {
      expect(await endOf(run)).toMatchObject({ code: "commit-unknown" });
      late.resolve();
    });
    expect(log).toEqual(["connect", "begin", "work", "keep", "commit"]);
    expect(rejections).toEqual([]);
  });
});
