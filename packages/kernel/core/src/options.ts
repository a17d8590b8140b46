import { types } from "node:util";
import { causedBy } from "./errors.ts";
import { nearest } from "./nearest.ts";
import { builtChannel, type Built, type BuiltFact } from "./observation/channels.ts";

/** Who owns the options, in messages: the factory that was called, for nested ones with the option that holds them. */
export type OptionOwner = string | { readonly factory: string; readonly holder: string };

/** A programmer's mistake in an option: a TypeError when something is built. */
export class OptionError extends TypeError {
  readonly factory: string;
  /** The option as the caller writes it, `signature.windowSeconds` or `allow[1]`; undefined for several. */
  readonly option: string | undefined;

  /** `what` follows the option's name, or with `isUnknown` "unknown option" and the name; it shows no value that may be a secret. */
  constructor(
    owner: OptionOwner,
    {
      option,
      what,
      isUnknown = false,
      cause,
    }: {
      readonly option?: string;
      readonly what: string;
      readonly isUnknown?: boolean;
      readonly cause?: unknown;
    },
  ) {
    const { factory, holder } = typeof owner === "string" ? { factory: owner, holder: undefined } : owner;
    const path = option === undefined || holder === undefined ? option : `${holder}.${option}`;
    const kind = isUnknown ? "unknown option" : "option";
    const place = path === undefined ? holder && `option ${holder}:` : `${kind} ${path}`;
    const gap = /^[,;]/.test(what) ? "" : " ";
    super(place === undefined ? `${factory}: ${what}` : `${factory}: ${place}${gap}${what}`, causedBy(cause));
    this.factory = factory;
    this.option = path ?? holder;
  }
}

/** `<factory>: option <name> must be <expected>, got <the kind of value>`. */
export function optionError(owner: OptionOwner, option: string, expected: string, got: unknown): OptionError {
  return new OptionError(owner, { option, what: `must be ${expected}, got ${describeValue(got)}` });
}

export function holderOf(owner: OptionOwner, option: string): OptionOwner {
  if (typeof owner === "string") return { factory: owner, holder: option };
  return { factory: owner.factory, holder: `${owner.holder}.${option}` };
}

export interface OptionRule<Read> {
  /** Turns the given value, or `undefined`, into what the code works with. Throws an OptionError. */
  readonly read: (value: unknown, owner: OptionOwner, option: string) => Read;
  /** The default as pages write it: `5000`, `"hold"`, `none` or `required`. */
  readonly byDefault: string;
  /** What {@link Built} shows of it; `all` is the whole table's result. Default: nothing. */
  readonly show?: ((read: never, all: never) => BuiltFact) | undefined;
}

/** Options as the code works with them: all present. */
export type Given<Options> = { readonly [Name in keyof Options]-?: Exclude<Options[Name], undefined> };

/**
 * One rule for each option of `Options`: a missing or extra rule is a compile error. `Read`: the rules' results where they differ from the
 * given types. A table that `satisfies OptionTable<Options, unknown>` has them inferred: {@link ReadOptions}.
 */
export type OptionTable<Options, Read = Given<Options>> = {
  readonly [Name in keyof Options]-?: OptionRule<
    unknown extends Read ? unknown : Name extends keyof Read ? Read[Name] : never
  >;
};

export type AnyTable = Readonly<Record<string, OptionRule<unknown>>>;

export type ReadOptions<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends OptionRule<infer Read> ? Read : never;
};

/** Reads options by the factory's table. Throws an OptionError for no object, an unknown (perhaps misspelt) option, or a refused value. */
export function readOptions<Table extends AnyTable>(
  owner: OptionOwner,
  table: Table,
  options: unknown,
): ReadOptions<Table> {
  assertKnownOptions(owner, options, Object.keys(table));
  const read = Object.fromEntries(
    Object.entries(table).map(([name, rule]) => [name, rule.read(Reflect.get(options, name), owner, name)]),
  );
  if (builtChannel.hasSubscribers) publishBuilt(owner, table, read);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- fromEntries knows no names; each member is of its own rule.
  return read as ReadOptions<Table>;
}

function publishBuilt(owner: OptionOwner, table: AnyTable, read: Readonly<Record<string, unknown>>): void {
  const facts = Object.entries(table).flatMap(([name, { show }]) =>
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each member is of its own rule
    show === undefined ? [] : [[name, show(read[name] as never, read as never)] as const],
  );
  if (facts.length === 0) return;
  const { factory, holder } = typeof owner === "string" ? { factory: owner, holder: undefined } : owner;
  builtChannel.publish({ factory, holder, facts: Object.fromEntries(facts) } satisfies Built);
}

/** Reads an adapter's own options by its table; the rest is for its checks. Throws an OptionError for no object, or a refused value. */
export function splitOptions<Table extends AnyTable, Options extends object>(
  owner: OptionOwner,
  table: Table,
  options: Options,
): readonly [own: ReadOptions<Table>, rest: Omit<Options, keyof Table>] {
  assertOptionsObject(owner, options);
  const own = Object.fromEntries(Object.keys(table).map((name) => [name, Reflect.get(options, name)]));
  const rest = Object.entries(options).filter(([name]) => !Object.hasOwn(table, name));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- fromEntries knows no names
  const left = Object.fromEntries(rest) as Omit<Options, keyof Table>;
  adaptersOwn.set(left, Object.keys(table));
  return [readOptions(owner, table, own), left];
}

// The names of an adapter's own options, keyed by the rest: messages list all known options.
const adaptersOwn = new WeakMap<object, readonly string[]>();

/** Throws an OptionError when `options` is no object or has an unknown key. */
export function assertKnownOptions(
  owner: OptionOwner,
  options: unknown,
  known: readonly string[],
): asserts options is object {
  assertOptionsObject(owner, options);
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  const all = [...(adaptersOwn.get(options) ?? []), ...known];
  const meant = nearest(unknown, all);
  const question = meant === undefined ? "" : `did you mean ${meant}? `;
  const what = `; ${question}known options are ${all.join(", ")}`;
  throw new OptionError(owner, { option: unknown, isUnknown: true, what });
}

function assertOptionsObject(owner: OptionOwner, options: unknown): asserts options is object {
  if (isRequest(options) && typeof owner === "string") {
    const what = `got a request in the place of its options: call ${owner}(options) once, at the start, and give what it returns to the router`;
    throw new OptionError(owner, { what });
  }
  // A promise has no own keys: every option would silently be its default.
  if (typeof options !== "object" || options === null || Array.isArray(options) || types.isPromise(options)) {
    const what = `must be an object, got ${describeValue(options)}`;
    throw typeof owner === "string"
      ? new OptionError(owner, { what: `options ${what}` })
      : new OptionError(owner.factory, { option: owner.holder, what });
  }
}

/** True for a request of node:http, Express, Fastify or fetch, and for the context of Hono and Koa, with which a router calls a handler. */
function isRequest(value: unknown, depth = 2): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { method, headers, rawHeaders, url, raw, req }: RequestMembers = value;
  if (depth > 0 && [raw, req].some((inner) => isRequest(inner, depth - 1))) return true;
  if (typeof method !== "string" || typeof headers !== "object" || headers === null) return false;
  return Array.isArray(rawHeaders) || (typeof url === "string" && "get" in headers);
}

interface RequestMembers {
  readonly method?: unknown;
  readonly headers?: unknown;
  readonly rawHeaders?: unknown;
  readonly raw?: unknown;
  readonly url?: unknown;
  readonly req?: unknown;
}

// Values can be secrets: only numbers, booleans and short type names are shown.
function describeValue(value: unknown): string {
  if (typeof value === "number" || typeof value === "boolean" || value === undefined || value === null)
    return String(value);
  if (typeof value === "string")
    return value === "" ? "an empty string" : `a string of ${value.length} characters`;
  if (Array.isArray(value)) return value.length === 0 ? "an empty array" : `an array of ${value.length}`;
  if (types.isPromise(value)) return "a promise";
  return typeof value === "function"
    ? "a function"
    : typeof value === "object"
      ? "an object"
      : `a ${typeof value}`;
}
