import { memoryAnswerStore, memoryIdempotencyStore } from "@countersign/idempotency";
import {
  answerStoreContract,
  idempotencyStoreContract,
  nonceStoreContract,
  type StoreHarnesses,
} from "@countersign/store-contract";
import type { ContractOptions, EngineHarness, IdempotencyContractOptions } from "../dist/harness.js";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { createNoncePlatform, nonceHarnessOf } from "./nonce-platform.ts";
import { createPlatform, harnessOf } from "./platform.ts";

afterEach(() => {
  jest.useRealTimers();
});

const idempotency = (options?: IdempotencyContractOptions) =>
  idempotencyStoreContract(() => harnessOf(createPlatform()), options);
const nonces = (options?: ContractOptions) =>
  nonceStoreContract(() => {
    const platform = createNoncePlatform();
    return nonceHarnessOf(platform, () => platform.store);
  }, options);

describe.each([
  ["idempotencyStoreContract", idempotency, idempotencyStoreContract],
  ["nonceStoreContract", nonces, nonceStoreContract],
] as const)("%s", (factory, contract, bind) => {
  test("gives every rule a name of its own", () => {
    const names = contract().map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  test.each([undefined, {}, "store"])("refuses %p in place of makeStore", (makeStore) => {
    const untyped = bind as (makeStore: unknown) => unknown;
    expect(() => untyped(makeStore)).toThrow(new RegExp(`^${factory}: makeStore`));
  });

  test("refuses an option that it does not know", () => {
    expect(() => contract({ witout: [] } as never)).toThrow(
      /unknown option witout; did you mean without\? known options are without/,
    );
  });

  test.each([
    ["the store itself", { claim: () => undefined }, /no member store: is it the store itself\?/],
    ["no close()", { store: {} }, /got one without close\(\)/],
    ["nothing", undefined, /no member store/],
  ])("says of a harness that is %s what it has to be", async (_name, harness, message) => {
    const untyped = bind as (makeStore: unknown) => ReturnType<typeof contract>;
    await expect(untyped(() => harness)[0]?.run()).rejects.toThrow(message);
  });

  test("refuses a facility that it does not know", () => {
    const without = ["clocks"] as unknown as ContractOptions["without"];
    expect(() => contract({ without })).toThrow(/option without knows clock, .* got clocks/);
  });

  test("skips nothing that was not declared as missing", () => {
    expect(contract().filter(({ skipped }) => skipped !== undefined)).toEqual([]);
  });

  test.each(["clock", "another", "fill", "engine", "durability"] as const)(
    "skips the cases that need what is declared as missing: %s",
    (facility) => {
      const skipped = contract({ without: [facility] }).filter((contractCase) => contractCase.skipped);
      expect(skipped.length).toBeGreaterThan(0);
      expect(skipped.every((contractCase) => contractCase.skipped === `without ${facility}`)).toBe(true);
    },
  );

  test("leaves the clock of the process as it was", async () => {
    const { Date: before } = globalThis;
    const own = contract().filter(({ name }) => name.includes("whatever the process thinks"));
    expect(own.length).toBeGreaterThan(0);
    for (const { run } of own) await run();
    expect(globalThis.Date).toBe(before);
  });
});

describe("a case", () => {
  const bare = () => {
    const store = memoryIdempotencyStore();
    return { store, close: () => store.close() };
  };

  const bareAnswers = () => {
    const store = memoryAnswerStore();
    return { store, close: () => store.close() };
  };

  const lacking = (members: object, engine?: Partial<EngineHarness>) =>
    idempotencyStoreContract(() => {
      const platform = createPlatform();
      return harnessOf(platform, () => ({ ...platform.store, ...members }), engine);
    });
  const claimsAlone = () => {
    const platform = createNoncePlatform();
    const { claim } = platform.store;
    return nonceStoreContract(() => nonceHarnessOf(platform, () => ({ claim })));
  };

  test.each([
    ["clock", "whatever steps come at whatever times", () => idempotencyStoreContract(bare)],
    ["another", "of many concurrent claims through several handles", () => idempotencyStoreContract(bare)],
    ["fill", "a full store refuses", () => idempotencyStoreContract(bare)],
    ["engine", "every call while the engine is stopped", () => idempotencyStoreContract(bare)],
    ["transaction", "an answer that is kept in a transaction", () => answerStoreContract(bareAnswers)],
    ["list", "list misses no key", () => lacking({ list: undefined })],
    ["retention", "retentions are measured", () => lacking({ retentionMs: undefined })],
    ["durability", "after the engine is back it has everything", () => lacking({}, { durable: false })],
    ["prune", "pruning removes the nonces", claimsAlone],
    ["close", "every call after close", claimsAlone],
  ] as const)(
    "fails, and does not hide, when what it needs is lacking: %s",
    async (facility, rule, cases) => {
      const found = cases().find(({ name }) => name.startsWith(rule));
      await expect(found?.run()).rejects.toThrow(`the harness lacks ${facility}; add it, or declare without`);
    },
  );

  test("makes a store of its own and closes it, also when it fails or cannot be checked", async () => {
    const open = new Set<number>();
    let made = 0;
    const cases = idempotencyStoreContract((): StoreHarnesses["idempotency"] => {
      made += 1;
      const id = made;
      open.add(id);
      const { store } = bare();
      store.release = () => "ok";
      return { store, close: () => void open.delete(id) };
    });
    const ended = await Promise.allSettled(cases.map(({ run }) => run()));
    expect(new Set(ended.map(({ status }) => status))).toEqual(new Set(["fulfilled", "rejected"]));
    // The model makes several, the more the shorter it tells a failure.
    expect(made).toBeGreaterThan(cases.length);
    expect(open.size).toBe(0);
  });

  test("fails with its rule when the store never answers", async () => {
    jest.useFakeTimers();
    const { store } = bare();
    store.claim = (() => new Promise(() => {})) as never;
    const [first] = idempotencyStoreContract(() => ({ store, close() {} }));
    const failed = expect(first?.run()).rejects.toThrow(`the case did not end: ${first?.name}`);
    await jest.advanceTimersByTimeAsync(60_000);
    await failed;
  });

  test("passes on what makeStore throws", async () => {
    const [first] = idempotencyStoreContract(async () => {
      throw new Error("no server");
    });
    await expect(first?.run()).rejects.toThrow("no server");
  });
});

describe("a history of steps", () => {
  // A repeated completion is lost.
  const wrong = (options: IdempotencyContractOptions) =>
    idempotencyStoreContract(() => {
      const platform = createPlatform();
      const { store } = platform;
      const complete: typeof store.complete = async (key, token) =>
        (await store.read(key))?.state === "done" ? "lost" : store.complete(key, token);
      return harnessOf(platform, () => ({ ...store, complete }));
    }, options).find(({ name }) => name.startsWith("whatever steps come at"));
  const failureOf = async (options: IdempotencyContractOptions): Promise<string> => {
    const failure: unknown = await wrong(options)
      ?.run()
      .catch((error: unknown) => error);
    return failure instanceof Error ? failure.message : "";
  };

  test("is told as the few calls that the failure needs, and by the seed that makes it again", async () => {
    const told = await failureOf({ seed: 7 });
    const [what, ...lines] = told.split("\n");
    expect(what).toMatch(/^complete\(".*", \{token:.*\}\) must be ok, got lost$/);
    const steps = lines.filter((line) => /^ +\d+\. /.test(line));
    expect(steps.length).toBeLessThan(10);
    expect(steps[0]).toMatch(/claim\(/);
    expect(steps.at(-1)).toMatch(/complete\(.*\) -> lost; a right store answers ok$/);
    const [, seed = ""] = /option seed: (\d+)/.exec(told) ?? [];
    // The token of a decision is another one each time.
    const withoutToken = what?.replace(/token:.*\}/, "");
    expect((await failureOf({ seed: Number(seed) })).replace(/token:.*\}/, "")).toContain(withoutToken);
  });

  test("is not tried when there are to be none", async () => {
    expect(await failureOf({ histories: 0 })).toBe("");
  });

  test.each([{ seed: -1 }, { seed: 0.5 }, { histories: Infinity }, { histories: "all" as never }])(
    "is refused by %p",
    (options) => {
      expect(() => idempotency(options)).toThrow(
        /^idempotencyStoreContract: option (seed|histories) must be/,
      );
    },
  );
});
