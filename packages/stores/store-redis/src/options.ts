import {
  assertFunction,
  option,
  optionError,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";

/**
 * Sends one command, its name first. Resolves to the reply, or rejects with the server's error. `key` tells a cluster client the node;
 * it is undefined for INFO, PING and a page of the list. No command may go to a replica, whose answers are old.
 */
export type SendCommand = (
  command: readonly string[],
  route: { readonly key: string | undefined; readonly isReadonly: false },
) => Promise<unknown>;

export interface RedisStoresOptions {
  /** Sends one command over the client that the app has. The stores never close it. */
  readonly sendCommand: SendCommand;
  /** Begins every key: 1 to 64 letters, digits and `. _ : -`. Default `countersign`. */
  readonly prefix?: string | undefined;
  /** How long a paid key stays `done`, in milliseconds. Default 90 days, at least one day: a retry after it would pay again. */
  readonly retentionMs?: number | undefined;
  /** How long a script or a command may take, in milliseconds, before it fails. It may be executed all the same. Default 2,000. */
  readonly commandTimeoutMs?: number | undefined;
  /** Milliseconds since 1970, an integer, in place of the server's clock. For tests. */
  readonly now?: (() => number) | undefined;
}

export const factoryName = "createRedisStores";

const dayMs = 86_400_000;

/** Cuts longer durations to about a century: with the clock added, Lua's numbers would not be exact any more. */
export const longestMs: number = 36_500 * dayMs;

export const table = {
  sendCommand: option.call<SendCommand>(),
  prefix: option.own(readPrefix, '"countersign"'),
  retentionMs: option.integer({ min: dayMs, max: longestMs, fallback: 90 * dayMs }, "90 days"),
  commandTimeoutMs: option.integer({ min: 1, max: 60_000, fallback: 2_000 }),
  now: option.own(readClock, "the server's clock"),
} satisfies OptionTable<RedisStoresOptions, unknown>;

export type ResolvedRedisOptions = ReadOptions<typeof table>;

// In the year 2255: a fence is in microseconds, and not exact above this.
const latestMs = Math.floor(Number.MAX_SAFE_INTEGER / 1_000);

// SCAN must not take it for a pattern, nor a cluster for a hash tag.
const prefixForm = /^[A-Za-z0-9._:-]{1,64}$/;
// With one of these in a prefix, the key of another store could be one of this store's.
const separators = [":key:", ":nonce:", ":answer:"];

function readPrefix(prefix: unknown = "countersign", owner: OptionOwner, name: string): string {
  if (typeof prefix !== "string" || !prefixForm.test(prefix)) {
    throw optionError(owner, name, "1 to 64 letters, digits and . _ : -", prefix);
  }
  if (separators.some((separator) => `${prefix}:`.includes(separator))) {
    throw optionError(owner, name, `a text without ${separators.join(" and ")}`, prefix);
  }
  return prefix;
}

// An empty text is the server's clock. NaN is neither before nor after the end of a lease: a live run would be given away.
function readClock(now: unknown, owner: OptionOwner, name: string): () => string {
  if (now === undefined) return () => "";
  assertFunction(owner, name, now);
  return () => {
    const nowMs = now();
    if (typeof nowMs === "number" && Number.isSafeInteger(nowMs) && nowMs >= 0 && nowMs <= latestMs) {
      return String(nowMs);
    }
    throw optionError(owner, name, "a function that gives whole milliseconds since 1970", nowMs);
  };
}
