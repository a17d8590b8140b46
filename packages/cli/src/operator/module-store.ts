import { statSync } from "node:fs";
import { pathToFileURL } from "node:url";
import type { IdempotencyStore } from "@countersign/idempotency";
import { UsageError } from "../command-io.ts";
import { codeOf } from "../thrown.ts";
import { openTimeoutMs, withinTime } from "./deadline.ts";
import { oneLine } from "./store-failure.ts";
import type { FileLocation } from "./store-location.ts";
import type { OperatorStore } from "./store.ts";

type Exports = Readonly<Record<string, unknown>>;

// In this order, as a CommonJS module has a default export beside what it names.
const names = ["createStore", "store", "default"] as const;

/**
 * Opens the store that a module of the platform exports. Throws a UsageError where there is no such file or no such export, or what
 * is exported is no store; what the module's own code throws comes out as it is.
 */
export async function openModuleStore(location: FileLocation<"module">): Promise<OperatorStore> {
  const exports = await load(location);
  const close = exports["close"];
  const closeModule = async (): Promise<void> => {
    if (typeof close === "function") await Reflect.apply(close, undefined, []);
  };
  try {
    const store = await storeOf(exports, location);
    return {
      idempotency: operatorsPart(store, location),
      nonces: undefined,
      async close() {
        await store.close();
        // `module.exports = { read, …, close }` of CommonJS names the store's own.
        if (close !== store.close) await closeModule();
      },
    };
  } catch (error) {
    await closeModule();
    throw error;
  }
}

async function load({ file, shown }: FileLocation<"module">): Promise<Exports> {
  assertFile(file, shown);
  try {
    const exports: Exports = await withinTime(shown, openTimeoutMs, import(pathToFileURL(file).href));
    return exports;
  } catch (error) {
    // Of the loader, not of the code that it ran.
    const isSyntax = error instanceof Error && error.name === "SyntaxError";
    if (!isSyntax && !codeOf(error).startsWith("ERR_")) throw error;
    throw new UsageError(`--store-module: ${shown} cannot be loaded: ${oneLine(String(error))}`, {
      cause: error,
    });
  }
}

function assertFile(file: string, shown: string): void {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) throw new UsageError(`--store-module: ${shown} does not exist`);
  if (!stats.isFile()) throw new UsageError(`--store-module: ${shown} is no file`);
}

async function storeOf(exports: Exports, { shown }: FileLocation<"module">): Promise<IdempotencyStore> {
  const name = names.find((known) => exports[known] !== undefined);
  if (name === undefined) {
    const expected = "expected createStore(), store or a default export";
    throw new UsageError(`--store-module: ${shown} exports no store: ${expected}`);
  }
  const exported = exports[name];
  const made: unknown = typeof exported === "function" ? Reflect.apply(exported, undefined, []) : exported;
  const store = await withinTime(shown, openTimeoutMs, Promise.resolve(made));
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
