import { statSync } from "node:fs";
import { pathToFileURL } from "node:url";
import type { IdempotencyStore } from "@countersign/idempotency";
import { UsageError } from "../command-io.ts";
import { codeOf, messageOf } from "../thrown.ts";
import { openedInTime } from "./deadline.ts";
import { describeBy, type DescribeKey } from "./describe-key.ts";
import { oneLine } from "./store-failure.ts";
import { parseStoreModule, type FileLocation } from "./store-location.ts";
import type { OperatorStore } from "./store.ts";

const flag = "--store-module";

/** What a module exports. */
type Exports = Readonly<Record<string, unknown>>;

// In this order, as a CommonJS module has a default export beside what it names.
const names = ["createStore", "store", "default"] as const;

/**
 * Opens the store that a module of the platform exports. Throws a UsageError where there is no such file or no such export, or what
 * is exported is no store; what the module's own code throws comes out as it is.
 */
export async function openModuleStore(location: FileLocation<"module">): Promise<OperatorStore> {
  const exports = await loadModule(location, flag);
  try {
    const store = await storeOf(exports, location);
    return {
      idempotency: operatorsPart(store, location),
      nonces: undefined,
      canList: typeof store.list === "function",
      describe: describeBy(exports["describe"]),
      async close() {
        await store.close();
        // `module.exports = { read, …, close }` of CommonJS names the store's own.
        if (exports["close"] !== store.close) await closeModule(exports);
      },
    };
  } catch (error) {
    await closeModule(exports);
    throw error;
  }
}

/** The `describe` that a module of the platform exports, and its `close`. Throws a UsageError where it exports no such function. */
export async function openDescribe(
  file: string,
): Promise<{ readonly describe: DescribeKey; readonly close: () => Promise<void> }> {
  const location = parseStoreModule(file);
  const exports = await loadModule(location, "--describe").catch((error: unknown) => {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`--describe: ${location.shown} cannot be loaded: ${oneLine(messageOf(error))}`, {
      cause: error,
    });
  });
  const describe = describeBy(exports["describe"]);
  if (describe === undefined) {
    throw new UsageError(`--describe: ${location.shown} exports no function describe(key, record)`);
  }
  return { describe, close: async () => await closeModule(exports) };
}

async function closeModule({ close }: Exports): Promise<void> {
  if (typeof close === "function") await Reflect.apply(close, undefined, []);
}

/** Imports a file that a flag names, in time. Throws a UsageError where it cannot be loaded; what its own code throws comes out as it is. */
async function loadModule({ file, shown }: FileLocation<"module">, option: string): Promise<Exports> {
  assertFile(file, shown, option);
  try {
    const exports: Exports = await openedInTime(shown, import(pathToFileURL(file).href));
    return exports;
  } catch (error) {
    // Of the loader, not of the code that it ran.
    const isSyntax = error instanceof Error && error.name === "SyntaxError";
    if (!isSyntax && !codeOf(error).startsWith("ERR_")) throw error;
    throw new UsageError(`${option}: ${shown} cannot be loaded: ${oneLine(String(error))}`, {
      cause: error,
    });
  }
}

function assertFile(file: string, shown: string, option: string): void {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) throw new UsageError(`${option}: ${shown} does not exist`);
  if (!stats.isFile()) throw new UsageError(`${option}: ${shown} is no file`);
}

async function storeOf(exports: Exports, { shown }: FileLocation<"module">): Promise<IdempotencyStore> {
  const name = names.find((known) => exports[known] !== undefined);
  if (name === undefined) {
    const expected = "expected createStore(), store or a default export";
    throw new UsageError(`--store-module: ${shown} exports no store: ${expected}`);
  }
  const exported = exports[name];
  const made: unknown = typeof exported === "function" ? Reflect.apply(exported, undefined, []) : exported;
  const store = await openedInTime(shown, Promise.resolve(made));
  if (isStore(store)) return store;
  const called = name === "default" ? "the default export" : name === "store" ? name : `${name}()`;
  const lacks = missing(store)
    .map((method) => `${method}()`)
    .join(", ");
  throw new UsageError(`--store-module: ${shown}: ${called} is no idempotency store: it has no ${lacks}`);
}

function isStore(value: unknown): value is IdempotencyStore {
  return missing(value).length === 0;
}

// What the commands call of every store; its methods may be those of a class.
function missing(value: unknown): readonly string[] {
  const methods = ["read", "resolve", "prune", "close"];
  if (typeof value !== "object" || value === null) return methods;
  return methods.filter((method) => typeof Reflect.get(value, method) !== "function");
}

/** A store of somebody's own may say null for what is absent, as the guard lets it. */
function operatorsPart(
  store: IdempotencyStore,
  { shown }: FileLocation<"module">,
): OperatorStore["idempotency"] {
  return {
    read: async (key) => (await store.read(key)) ?? undefined,
    resolve: (key, outcome, decision) => store.resolve(key, outcome, decision),
    reopen(key, decision) {
      if (typeof store.reopen === "function") return store.reopen(key, decision);
      const message = `the store of ${shown} has no reopen(), so no decision can be taken back`;
      throw new UsageError(`--store-module: ${message}`);
    },
    // One that was written before there were decisions keeps none.
    readReleased: async (key) =>
      typeof store.readReleased === "function" ? ((await store.readReleased(key)) ?? undefined) : undefined,
    prune: () => store.prune(),
    async list(query) {
      if (typeof store.list !== "function") {
        const message = `the store of ${shown} has no list(), so its keys cannot be listed`;
        throw new UsageError(`--store-module: ${message}`);
      }
      const page = await store.list(query);
      return { ...page, cursor: page.cursor ?? undefined };
    },
  };
}
