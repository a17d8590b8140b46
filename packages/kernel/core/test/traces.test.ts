import { AsyncLocalStorage } from "node:async_hooks";
import { tracingChannel } from "node:diagnostics_channel";
import { onTraceEnd, traces, type PublishedEvents } from "@countersign/core";
import { aroundTrace, askStore, traced } from "@countersign/core/internal";
import { afterEach, describe, expect, jest, test } from "@jest/globals";

function fail(): never {
  throw new Error("no context manager");
}

type Phase = "start" | "end" | "asyncStart" | "asyncEnd" | "error";
const phases: readonly Phase[] = ["start", "end", "asyncStart", "asyncEnd", "error"];
const channels = tracingChannel<string, object>("countersign:store");
const step = { engine: "sqlite", step: "probe", timeoutMs: 1_000, name: "the store" };
const ends: (() => unknown)[] = [];

// A file before this one may have left a subscriber in the process.
const subscribed = (): boolean[] => [traces.store].map(({ hasSubscribers }) => hasSubscribers);
const subscribedBefore = subscribed();

afterEach(() => {
  while (ends.length > 0) ends.pop()?.();
  expect(subscribed()).toEqual(subscribedBefore);
});

/** What every channel of the trace is told, with the outcome at that time. */
function record(): { readonly log: string[]; readonly contexts: Set<unknown> } {
  const log: string[] = [];
  const contexts = new Set<unknown>();
  for (const phase of phases) {
    const hear = (context: unknown): void => {
      // What other test files have left under way in this process is told here too.
      if (Object(context).step !== step.step) return;
      contexts.add(context);
      log.push(`${phase} ${Object(context).outcome ?? "-"}`);
    };
    channels[phase].subscribe(hear);
    ends.push(() => channels[phase].unsubscribe(hear));
  }
  return { log, contexts };
}

describe("a store that is asked", () => {
  test("that answers at once is over at end", () => {
    const { log, contexts } = record();
    expect(askStore(step, () => "acquired")).toBe("acquired");
    expect(log).toEqual(["start -", "end ok"]);
    const [context] = contexts;
    expect(contexts.size).toBe(1);
    expect(context).toMatchObject({ engine: "sqlite", step: "probe", result: "acquired", outcome: "ok" });
    expect((context as PublishedEvents["store"]).durationMs).toBeGreaterThanOrEqual(0);
  });

  test("that answers later is over at asyncEnd", async () => {
    const { log } = record();
    const answer = askStore(step, () => Promise.resolve("acquired"));
    expect(log).toEqual(["start -", "end -"]);
    expect(await answer).toBe("acquired");
    await new Promise(setImmediate);
    expect(log).toEqual(["start -", "end -", "asyncStart ok", "asyncEnd ok"]);
  });

  test("that throws or rejects says so, and the caller gets the error", async () => {
    const { log } = record();
    const broken = new Error("no connection");
    expect(() =>
      askStore(step, () => {
        throw broken;
      }),
    ).toThrow(broken);
    expect(log.splice(0)).toEqual(["start -", "error error", "end error"]);
    await expect(askStore(step, () => Promise.reject(broken))).rejects.toBe(broken);
    await new Promise(setImmediate);
    expect(log).toEqual(["start -", "end -", "error error", "asyncStart error", "asyncEnd error"]);
  });

  test("is done inside of what is put around it, the latest outermost, while somebody listens", () => {
    const { log } = record();
    for (const name of ["inner", "outer"]) {
      ends.push(
        aroundTrace(traces.store, ({ step: named }, work) => {
          if (named === step.step) log.push(name);
          return work();
        }),
      );
    }
    const call = (): string => String(log.push("call"));
    void askStore(step, call);
    expect(log.splice(0)).toEqual(["start -", "outer", "inner", "call", "end ok"]);
    ends.splice(-2).forEach((end) => end());
    void askStore(step, call);
    expect(log).toEqual(["start -", "call", "end ok"]);
  });

  test("is done without what is put around it and throws, and throws its own error once", () => {
    record();
    const emitWarning = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    ends.push(() => emitWarning.mockRestore());
    const bug = (): never => {
      throw new Error("no tracer");
    };
    ends.push(aroundTrace(traces.store, bug));
    expect(askStore(step, () => "acquired")).toBe("acquired");
    expect(emitWarning.mock.calls.map(([text]) => String(text))).toEqual([
      expect.stringMatching(/^aroundTrace .*no tracer/),
    ]);
    ends.push(aroundTrace(traces.store, (_context, work) => work()));
    let calls = 0;
    const broken = (): never => {
      calls += 1;
      throw new Error("no connection");
    };
    expect(() => askStore(step, broken)).toThrow("no connection");
    expect(calls).toBe(1);
  });

  test.each<[string, <R>(work: () => R) => R]>([
    ["throws behind the work", (work) => [work()].map(() => fail())[0] as never],
    ["does the work twice", (work) => [work(), work()][0] as never],
    ["does no work", () => undefined as never],
    ["gives something else", (work) => void work() as never],
    [
      "swallows an error",
      (work) => {
        try {
          return work();
        } catch {
          return undefined as never;
        }
      },
    ],
  ])("is done once, and its own answer or error is given, when what is around it %s", (_name, around) => {
    record();
    const emitWarning = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    ends.push(() => emitWarning.mockRestore());
    ends.push(aroundTrace(traces.store, (_context, work) => around(work)));
    let calls = 0;
    expect(askStore(step, () => `acquired ${(calls += 1)}`)).toBe("acquired 1");
    const broken = (): never => {
      calls += 1;
      throw new Error("no connection");
    };
    expect(() => askStore(step, broken)).toThrow("no connection");
    expect(calls).toBe(2);
  });

  test("that hangs is over with its time, for the trace and for the caller", async () => {
    const { log } = record();
    const hanging = askStore({ ...step, timeoutMs: 1 }, () => new Promise<string>(() => undefined));
    await expect(hanging).rejects.toThrow("the store did not answer within 1 ms");
    await new Promise(setImmediate);
    expect(log.at(-1)).toBe("asyncEnd timeout");
  });

  test.each([
    ["observed", true],
    ["unobserved", false],
  ])(
    "that fails, %s, at once or later or by its time, fails with what its failure is turned into",
    async (_name, isObserved) => {
      if (isObserved) record();
      const ours = { ...step, timeoutMs: 1, failure: (cause: unknown) => new Error("ours", { cause }) };
      const broken = new Error("no connection");
      expect(() =>
        askStore(ours, () => {
          throw broken;
        }),
      ).toThrow(expect.objectContaining({ message: "ours", cause: broken }));
      await expect(askStore(ours, () => Promise.reject(broken))).rejects.toMatchObject({
        message: "ours",
        cause: broken,
      });
      await expect(askStore(ours, () => new Promise(() => undefined))).rejects.toMatchObject({
        message: "ours",
        cause: { message: "the store did not answer within 1 ms" },
      });
    },
  );

  test("asks a thenable for its answer once", async () => {
    record();
    let asked = 0;
    const lazy = {
      // oxlint-disable-next-line unicorn/no-thenable -- as query builders are
      then(resolve: (value: string) => void) {
        asked += 1;
        resolve("acquired");
      },
    };
    expect(await askStore(step, () => lazy as unknown as Promise<string>)).toBe("acquired");
    await new Promise(setImmediate);
    expect(asked).toBe(1);
  });

  test("names no engine where the store does not", () => {
    const { contexts } = record();
    void askStore({ ...step, engine: undefined }, () => "ok");
    expect([...contexts]).toMatchObject([{ engine: "other" }]);
  });
});

test("what is bound to start is there inside, also behind an await, and traces nest", async () => {
  const spans = new AsyncLocalStorage<string[]>();
  const bind = (channel: typeof traces.store | typeof traces.claim, name: string): void => {
    channel.start.bindStore(spans, () => [...(spans.getStore() ?? []), name]);
    ends.push(() => channel.start.unbindStore(spans));
  };
  bind(traces.store, "store");
  bind(traces.claim, "claim");
  const seen: unknown[] = [];
  const context: PublishedEvents["claim"] = { guard: "exampleGuard", key: "k", req: undefined };
  const outcomeOf = (): string => "done";
  await traced(traces.claim, context, {
    work: async () => {
      await askStore(step, async () => {
        await new Promise(setImmediate);
        seen.push(spans.getStore());
      });
      seen.push(spans.getStore());
    },
    outcomeOf,
  });
  expect(seen).toEqual([["claim", "store"], ["claim"]]);
  expect(spans.getStore()).toBeUndefined();
});

test("onTraceEnd hears once of each trace, until it is ended", async () => {
  const heard: Parameters<Parameters<typeof onTraceEnd>[1]>[0][] = [];
  const end = onTraceEnd(traces.store, (context) => {
    if (context.step === step.step) heard.push(context);
  });
  void askStore(step, () => 1);
  await askStore(step, async () => 2);
  await expect(askStore(step, () => Promise.reject(new Error("3")))).rejects.toThrow("3");
  await new Promise(setImmediate);
  end();
  expect(heard.map(({ outcome, result }) => [outcome, result])).toEqual([
    ["ok", 1],
    ["ok", 2],
    ["error", undefined],
  ]);
  expect(subscribed()).toEqual(subscribedBefore);
});
