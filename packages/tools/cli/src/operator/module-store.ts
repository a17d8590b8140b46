import { statSync } from "node:fs";
import { pathToFileURL } from "node:url";
import type { IdempotencyStore } from "@countersign/idempotency";
import { codeOf, memberOf, UsageError } from "../command-io.ts";
import { describeBy } from "./describe-key.ts";
import type { Engine, OperatorStore } from "./store.ts";
import { oneLine, openedInTime } from "./store-failure.ts";
import type { StoreLocation, StoreTarget } from "./store-target.ts";

type Exports = Readonly<Record<string, unknown>>;

export const moduleEngine: Engine = { open, inspect: () => ({ doubts: [] }) };

/** Throws a UsageError if file, export or store is missing, and whatever the module's own code throws. */
async function open({ location }: StoreTarget): Promise<OperatorStore> {
  const exports = await loadModule(location);
  try {
    const store = await storeOf(exports, location);
    return {
      idempotency: operatorsPart(store, location),
      nonces: undefined,
      canList: typeof store.list === "function",
      describe: describeBy(exports["describe"]),
      async close() {
        await store.close();
        await closeModule(exports);
      },
    };
  } catch (error) {
    await closeModule(exports);
    throw error;
  }
}

async function closeModule({ close }: Exports): Promise<void> {
  if (typeof close === "function") await Reflect.apply(close, undefined, []);
}

async function loadModule({ address, shown }: StoreLocation): Promise<Exports> {
  const stats = statSync(address, { throwIfNoEntry: false });
  if (stats === undefined) throw new UsageError(`--store-module: ${shown} does not exist`);
  if (!stats.isFile()) throw new UsageError(`--store-module: ${shown} is no file`);
  try {
    const exports: Exports = await openedInTime(shown, import(pathToFileURL(address).href));
    return exports;
  } catch (error) {
    // From the loader, not from the code that it ran.
    const isSyntax = error instanceof Error && error.name === "SyntaxError";
    if (!isSyntax && !codeOf(error).startsWith("ERR_")) throw error;
    const reason = oneLine(String(error));
    throw new UsageError(`--store-module: ${shown} cannot be loaded: ${reason}`, { cause: error });
  }
}

// What the commands call on every store; a class may define them.
const methods = ["read", "resolve", "prune", "close"];

async function storeOf({ createStore }: Exports, { shown }: StoreLocation): Promise<IdempotencyStore> {
  if (typeof createStore !== "function")
    throw new UsageError(`--store-module: ${shown} exports no function createStore()`);
  const store: unknown = await openedInTime(
    shown,
    Promise.resolve(Reflect.apply(createStore, undefined, [])),
  );
  if (isStore(store)) return store;
  const lacks = methods.filter((method) => !hasMethod(store, method)).map((method) => `${method}()`);
  throw new UsageError(
    `--store-module: ${shown}: createStore() gave no idempotency store: it has no ${lacks.join(", ")}`,
  );
}

function isStore(value: unknown): value is IdempotencyStore {
  return methods.every((method) => hasMethod(value, method));
}

function hasMethod(value: unknown, method: string): boolean {
  return typeof memberOf(value, method) === "function";
}

/** A custom store may return null for what is absent, as the guard allows. */
function operatorsPart(store: IdempotencyStore, { shown }: StoreLocation): OperatorStore["idempotency"] {
  const lacks = (method: string, consequence: string): UsageError =>
    new UsageError(`--store-module: the store of ${shown} has no ${method}(), so ${consequence}`);
  return {
    claim: (key, claim) => store.claim(key, claim),
    hold: (key, token, reason) => store.hold(key, token, reason),
    read: async (key) => (await store.read(key)) ?? undefined,
    resolve: (key, outcome, decision) => store.resolve(key, outcome, decision),
    reopen(key, decision) {
      if (typeof store.reopen === "function") return store.reopen(key, decision);
      throw lacks("reopen", "no decision can be taken back");
    },
    // A store written before decisions existed keeps none.
    readReleased: async (key) =>
      typeof store.readReleased === "function" ? ((await store.readReleased(key)) ?? undefined) : undefined,
    prune: () => store.prune(),
    async list(query) {
      if (typeof store.list !== "function") throw lacks("list", "its keys cannot be listed");
      const page = await store.list(query);
      return { ...page, cursor: page.cursor ?? undefined };
    },
  };
}
