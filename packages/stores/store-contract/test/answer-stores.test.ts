import { memoryAnswerStore, type AnswerStore } from "@countersign/idempotency";
import { answerStoreContract, type StoreHarnesses } from "@countersign/store-contract";
import { expect, test } from "@jest/globals";
import { testContract } from "@countersign/test-support/runs/contract.ts";
import { fillAnswers } from "./fill.ts";
import { testClock, type Clock } from "./memory-harness.ts";
import { engineOf } from "./platform.ts";
import { onFile, sqliteAnswerHarness } from "./sqlite-harness.ts";
import { testWrongStores } from "./wrong/noticed.ts";
import { type FoundBy, failuresOf, listed, replacing } from "./wrong/wrong-store.ts";

function memoryHarness({ now, advance }: Clock): StoreHarnesses["answers"] {
  const store = memoryAnswerStore({ max: 300, ...(now && { now }) });
  return {
    store,
    ...(advance && { advance }),
    fill: () => fillAnswers(store),
    close: () => store.close(),
  };
}

const inProcess = ["another", "engine", "durability", "transaction"] as const;

testContract(
  "memoryAnswerStore",
  answerStoreContract(() => memoryHarness(testClock()), { without: inProcess }),
);

testContract(
  "createAnswers, on a clock that is moved",
  answerStoreContract(() => sqliteAnswerHarness(testClock()), { without: onFile }),
);

testContract(
  "createAnswers, by SQLite's clock",
  answerStoreContract(() => sqliteAnswerHarness({}), { without: [...onFile, "clock"] }),
);

type Wrong = (right: Shared) => Partial<AnswerStore<Tx>>;

const instead = replacing<Shared, AnswerStore<Tx>>();

/** The tokens that a transaction has kept. */
type Tx = { kept?: string[] };

interface Entry {
  readonly answer: Uint8Array;
  untilMs: number;
}

class Shared {
  nowMs = 1_800_000_000_000;
  isRunning = true;
  stops = 0;
  isClosed = false;
  readonly kept = new Map<string, Entry>();
  readonly max = 400;
  readonly retentionMs = 10_000;

  assertUsable(): void {
    if (this.isClosed || !this.isRunning) throw new Error("the store cannot be used");
  }

  store(): AnswerStore<Tx> {
    return {
      retentionMs: this.retentionMs,
      keep: (token, answer) => {
        this.assertUsable();
        if (!this.kept.has(token) && this.kept.size >= this.max) throw new Error("full");
        this.kept.set(token, { answer: Uint8Array.from(answer), untilMs: this.nowMs + this.retentionMs });
      },
      keepIn: ({ kept }, token, answer) => {
        if (kept === undefined) throw new Error("no transaction");
        void this.store().keep(token, answer);
        kept.push(token);
      },
      find: (token) => {
        this.assertUsable();
        const entry = this.kept.get(token);
        return entry === undefined || entry.untilMs <= this.nowMs ? undefined : Uint8Array.from(entry.answer);
      },
      prune: () => {
        this.assertUsable();
        const ended = [...this.kept].filter(([, { untilMs }]) => untilMs <= this.nowMs);
        for (const [token] of ended) this.kept.delete(token);
        return ended.length;
      },
      close: () => void (this.isClosed = true),
    };
  }
}

function casesOf(wrong: Wrong = () => ({})) {
  return answerStoreContract(() => {
    const shared = new Shared();
    const handle = (): AnswerStore<Tx> => ({ ...shared.store(), ...wrong(shared) });
    const store = handle();
    return {
      store,
      advance: (ms) => void (shared.nowMs += ms),
      another: handle,
      async transaction(work: (tx: Tx) => unknown) {
        const kept: string[] = [];
        const tx: Tx = { kept };
        try {
          await work(tx);
        } catch (error) {
          for (const token of kept) shared.kept.delete(token);
          throw error;
        } finally {
          delete tx.kept;
        }
      },
      fill: () => fillAnswers(shared.store()),
      engine: {
        ...engineOf(shared),
        stop() {
          shared.isRunning = false;
          shared.stops += 1;
        },
      },
      close() {},
    };
  });
}

const wrongStores: FoundBy<Wrong> = {
  "an answer is found by its token": {
    "forgets an answer that was found": instead("find", async (right, token) => {
      const answer = await right.store().find(token);
      right.kept.delete(token);
      return answer;
    }),
    "keeps answers as text": instead("keep", (right, token, answer) =>
      right.store().keep(token, Buffer.from(Buffer.from(answer).toString())),
    ),
  },
  "an answer that is kept again": {
    "keeps the first answer of a token": instead("keep", (right, token, answer) =>
      right.kept.has(token) ? undefined : right.store().keep(token, answer),
    ),
  },
  "an answer that is kept in a transaction": {
    "keeps the answer of a transaction that is rolled back": instead("keepIn", (right, _tx, token, answer) =>
      right.store().keep(token, answer),
    ),
    "keeps an answer behind the end of its transaction": instead("keepIn", (right, tx, token, answer) =>
      tx.kept === undefined ? right.store().keep(token, answer) : right.store().keepIn?.(tx, token, answer),
    ),
  },
  "answers of tokens": {
    "does not tell upper case from lower case": (right) => ({
      keep: (token, answer) => right.store().keep(token.toLowerCase(), answer),
      find: (token) => right.store().find(token.toLowerCase()),
    }),
  },
  "an answer is what it was": {
    "keeps the giver's own bytes": instead("keep", async (right, token, answer) => {
      await right.store().keep(token, answer);
      right.kept.set(token, { answer, untilMs: right.nowMs + right.retentionMs });
    }),
  },
  "an answer is found through": {
    "remembers for each handle on its own": (right) => {
      const own = new Set<string>();
      return {
        keep: async (token, answer) => {
          await right.store().keep(token, answer);
          own.add(token);
        },
        find: async (token) => {
          const answer = await right.store().find(token);
          return own.has(token) ? answer : undefined;
        },
      };
    },
  },
  "an answer is found until": {
    "never ends a retention": (right) => ({
      find: (token) => right.store().find(token) ?? right.kept.get(token)?.answer,
      prune: () => (right.assertUsable(), 0),
    }),
    "does not prolong what is kept again": instead("keep", async (right, token, answer) => {
      const untilMs = right.kept.get(token)?.untilMs;
      await right.store().keep(token, answer);
      const entry = right.kept.get(token);
      if (entry !== undefined && untilMs !== undefined) entry.untilMs = untilMs;
    }),
  },
  "prune tells": {
    "counts all that it has when it prunes": instead("prune", async (right) => {
      const { size } = right.kept;
      await right.store().prune();
      return size;
    }),
  },
  "every call after": {
    "goes on after close": instead("find", (right, token) => {
      const { isClosed } = right;
      right.isClosed = false;
      const answer = right.store().find(token);
      right.isClosed = isClosed;
      return answer;
    }),
  },
  "a full store": {
    "makes room by forgetting": instead("keep", (right, token, answer) => {
      if (right.kept.size >= right.max) right.kept.clear();
      return right.store().keep(token, answer);
    }),
  },
  "every call while": {
    "finds nothing while its engine is stopped": instead("find", (right, token) =>
      right.isRunning ? right.store().find(token) : undefined,
    ),
  },
  "after the engine is back it": {
    "forgets what it has with its engine": instead("find", (right, token) =>
      right.stops > 0 ? undefined : right.store().find(token),
    ),
  },
  "after the engine is back the": {
    "does not find its engine again": instead("keep", (right, token, answer) => {
      if (right.stops > 0) throw new Error("the connection is gone");
      return right.store().keep(token, answer);
    }),
  },
};

test("a right store of answers passes every case", async () => {
  expect(await failuresOf(casesOf())).toEqual({});
});

testWrongStores(listed(wrongStores), casesOf);
