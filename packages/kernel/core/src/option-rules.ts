import { types } from "node:util";
import {
  holderOf,
  OptionError,
  optionError,
  readOptions,
  type AnyTable,
  type OptionOwner,
  type OptionRule,
  type ReadOptions,
} from "./options.ts";
import { createWarnOnce, type BuiltFact } from "./observation/channels.ts";

/** TypeScript 5.4's NoInfer, for older versions: the values alone say what `Value` is. */
type Uninferred<Value> = [Value][Value extends unknown ? 0 : never];

/** The rules that many options share. Without a `fallback`, the default, the option is required. */
export const option = {
  integer(
    { min, max, fallback }: { readonly min: number; readonly max: number; readonly fallback?: number },
    byDefault: string = byDefaultOf(fallback),
  ): OptionRule<number> {
    return {
      byDefault,
      read: (value = fallback, owner, name) => {
        if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max)
          return value;
        throw optionError(owner, name, `an integer from ${min} to ${max}`, value);
      },
    };
  },

  boolean(fallback: boolean): OptionRule<boolean> {
    return {
      byDefault: byDefaultOf(fallback),
      read: (value = fallback, owner, name) => {
        if (typeof value === "boolean") return value;
        throw optionError(owner, name, "true or false", value);
      },
    };
  },

  oneOf<const Value extends string | number>(
    values: readonly [Value, ...Value[]],
    fallback?: Uninferred<Value>,
  ): OptionRule<Value> {
    return {
      byDefault: byDefaultOf(fallback),
      read: (value = fallback, owner, name) => {
        const found = values.find((known) => known === value);
        if (found !== undefined) return found;
        throw optionError(owner, name, listed(values.map((known) => JSON.stringify(known))), value);
      },
    };
  },

  /** A function, whose arguments only its owner knows. */
  call<Call extends (...args: never[]) => unknown>(
    fallback?: Call,
    byDefault: string = byDefaultOf(fallback),
  ): OptionRule<Call> {
    return {
      byDefault,
      read: (value = fallback, owner, name) => {
        assertFunction(owner, name, value);
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its arguments show when it is called
        return value as Call;
      },
    };
  },

  /** A clock in milliseconds; throws when it gives no finite number: with NaN a lease neither lasts nor ends. */
  clock(fallback: () => number, byDefault: string): OptionRule<() => number> {
    return {
      byDefault,
      read: (value, owner, name) => {
        if (value === undefined) return fallback;
        assertFunction(owner, name, value);
        return () => {
          const nowMs = value();
          if (typeof nowMs === "number" && Number.isFinite(nowMs)) return nowMs;
          throw optionError(owner, name, "a function that gives milliseconds, a finite number", nowMs);
        };
      },
    };
  },

  /** An object with a table of its own. An absent one counts as empty. */
  group<Table extends AnyTable>(table: Table, byDefault: string): OptionRule<ReadOptions<Table>> {
    return {
      byDefault,
      read: (value = {}, owner, name) => readOptions(holderOf(owner, name), table, value),
    };
  },

  /** An object with another factory's options, which reads them itself (`holderOf`). Only the holder sets `fixed` ones. */
  section<Options extends object>(example: string, fixed: readonly string[] = []): OptionRule<Options> {
    return {
      byDefault: "required",
      read: (value, owner, name) => {
        if (typeof value !== "object" || value === null || Array.isArray(value) || types.isPromise(value)) {
          throw optionError(owner, name, `an object such as ${example}`, value);
        }
        const set = fixed.find((own) => own in value);
        if (set !== undefined) {
          throw new OptionError(holderOf(owner, name), { option: set, what: "cannot be set here" });
        }
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the other factory reads them
        return value as Options;
      },
    };
  },

  optional<Read>(rule: OptionRule<Read>, byDefault = "none"): OptionRule<Read | undefined> {
    return {
      byDefault,
      read: (value, owner, name) => (value === undefined ? undefined : rule.read(value, owner, name)),
    };
  },

  own<Read>(read: OptionRule<Read>["read"], byDefault = "required"): OptionRule<Read> {
    return { read, byDefault };
  },

  shown,
};

/** Lets `countersign:built` show the value, or what `show` makes of it: no secret, and nothing that helps to guess one. */
function shown<Read extends BuiltFact>(rule: OptionRule<Read>): OptionRule<Read>;
function shown<Read>(rule: OptionRule<Read>, show: (read: Read, all: never) => BuiltFact): OptionRule<Read>;
function shown(
  rule: OptionRule<unknown>,
  show: OptionRule<unknown>["show"] = (read) => read,
): OptionRule<unknown> {
  return { ...rule, show };
}

export function assertFunction(
  owner: OptionOwner,
  name: string,
  value: unknown,
): asserts value is (...args: never[]) => unknown {
  if (typeof value !== "function") throw optionError(owner, name, "a function", value);
}

/** By its methods, not by its class: two copies of a package may be installed. */
export function hasMethods<Value extends object>(
  value: unknown,
  ...names: readonly (keyof Value)[]
): value is Value {
  if (typeof value !== "object" || value === null) return false;
  return names.every((name) => typeof Reflect.get(value, name) === "function");
}

/**
 * Throws an OptionError when NODE_ENV is `production`: a memory store forgets with its process and shares nothing. Returns a function to
 * call at each use of the store: where production is allowed, it warns once, `memory-store`.
 */
export function refuseInProduction(factoryName: string, allowInProduction: boolean): () => void {
  if (process.env["NODE_ENV"] !== "production") return () => {};
  const what = "a memory store forgets everything on restart and is not shared between processes; ";
  if (!allowInProduction) {
    throw new OptionError(factoryName, {
      what: `${what}use a durable store in production, or set allowInProduction: true`,
    });
  }
  const warnOnce = createWarnOnce(factoryName);
  const warning = { code: "memory-store", message: `${what}NODE_ENV is production` };
  return () => warnOnce(warning);
}

function byDefaultOf(fallback: unknown): string {
  return fallback === undefined ? "required" : JSON.stringify(fallback);
}

// "a", "b" or "c"
function listed(values: readonly string[]): string {
  return values.length === 1 ? values.join("") : `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`;
}
