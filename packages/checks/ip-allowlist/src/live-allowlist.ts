import {
  inTime,
  RefreshingValue,
  option,
  publishFailure,
  publishNotice,
  readOptions,
  type OptionTable,
} from "@countersign/core/door";
import type { AddressMatcher } from "./address.ts";
import { compileEntries, rulesTable, type ReadList } from "./allowlist.ts";

/** Where the present list of addresses is: matches by it, and throws while there is none that is good. */
export interface AddressSource {
  /** Whether a client address is in the list; throws an Error while nobody can say. */
  readonly isAllowed: AddressMatcher;
}

/** A list that is read again by itself, as one set that is replaced whole. */
export interface LiveAllowlist extends AddressSource {
  /** Resolves when there is a list; rejects when the first one cannot be had. Await it before the server listens. */
  ready(): Promise<void>;
  /** Reads the list now, or joins the reading under way. Rejects when it cannot be had; the last good one stays in use. */
  refresh(): Promise<void>;
  /** The present list; none before there is one. */
  entries(): readonly string[];
  /** Ends timers and what is under way. From here on every address is refused. */
  close(): void;
}

/** Options of {@link liveAllowlist}. */
export interface LiveAllowlistOptions {
  /** Gives the addresses and CIDR blocks that may call, all of them. A single bad entry makes the list unusable; an empty one refuses everybody. */
  readonly load: (signal: AbortSignal) => readonly string[] | Promise<readonly string[]>;
  /** How often the list is read, in seconds. Default 300. */
  readonly refreshSeconds?: number | undefined;
  /** After a reading that failed, the next one follows in so many seconds. Default 30. */
  readonly cooldownSeconds?: number | undefined;
  /** For how long the last good list is used, in seconds since it was read; beyond it everybody is refused. Default 86,400. */
  readonly maxAgeSeconds?: number | undefined;
  /** How long a reading may take, in milliseconds. Default 5,000. */
  readonly timeoutMs?: number | undefined;
  /** Accept rules that together admit every address of a family, such as `0.0.0.0/0`. Default false. */
  readonly dangerouslyAllowAnyAddress?: boolean | undefined;
  /** A monotonic clock in milliseconds; default performance.now. */
  readonly now?: (() => number) | undefined;
}

export const liveTable: OptionTable<LiveAllowlistOptions> = {
  load: option.call(),
  refreshSeconds: option.integer({ min: 1, max: 86_400, fallback: 300 }),
  cooldownSeconds: option.integer({ min: 1, max: 3600, fallback: 30 }),
  maxAgeSeconds: option.integer({ min: 1, max: 2_592_000, fallback: 86_400 }),
  timeoutMs: option.integer({ min: 1, max: 60_000, fallback: 5000 }),
  ...rulesTable,
  now: option.clock(() => performance.now(), "performance.now"),
};

const factoryName = "liveAllowlist";

/**
 * A list of addresses that changes at run time. While it cannot be read, or is not exactly a list of rules, the last good one stays in use
 * for `maxAgeSeconds`, told once on `countersign:notice`; without a good one everybody is refused. Throws an OptionError on a bad option.
 */
export function liveAllowlist(options: LiveAllowlistOptions): LiveAllowlist {
  const read = readOptions(factoryName, liveTable, options);
  const { refreshSeconds, cooldownSeconds, maxAgeSeconds, timeoutMs, now } = read;
  let isFailing = false;
  const live = new RefreshingValue<ReadList>({
    guard: factoryName,
    async load(signal, previous) {
      const late = (): Error => new Error(`load did not answer within ${timeoutMs} ms`);
      const given: unknown = await inTime(read.load(signal), timeoutMs, late);
      const { dangerouslyAllowAnyAddress } = read;
      const value = compileEntries(given, { owner: factoryName, name: "load()", dangerouslyAllowAnyAddress });
      isFailing = false;
      tellChanges(value.entries, previous?.entries);
      return { value, refreshMs: 1000 * refreshSeconds };
    },
    cooldownMs: 1000 * cooldownSeconds,
    clock: now,
    closedBecause: "the list is closed",
    onFailure(error, hasList) {
      // Once, until it succeeds again: it is tried every few seconds.
      if (isFailing) return;
      isFailing = true;
      const message = hasList
        ? "the last good list of addresses stays in use"
        : "there is no list of addresses";
      publishFailure({ guard: factoryName, code: "allowlist-not-refreshed", message, error });
    },
  });
  const present = (): ReadList => {
    if (live.isClosed) throw live.closed();
    const list = live.value;
    // Also where no timer runs, or one is late.
    const isDue = list === undefined || live.ageMs() >= 1000 * refreshSeconds;
    if (isDue && live.mayAttempt()) live.refreshInBackground();
    if (list !== undefined && live.ageMs() < 1000 * maxAgeSeconds) return list;
    throw live.failure ?? new Error(`${factoryName}: there is no list of addresses yet: await ready()`);
  };
  return {
    isAllowed: (address) => present().isAllowed(address),
    ready: () => live.ready(),
    refresh: () => live.refresh(),
    entries: () => live.value?.entries ?? [],
    close: () => live.close(),
  };
}

function tellChanges(entries: readonly string[], previous: readonly string[] | undefined): void {
  if (entries.length === 0 && previous?.length !== 0) {
    const message = "the list of addresses is empty: everybody is refused";
    publishFailure({ guard: factoryName, code: "allowlist-empty", message });
  }
  if (previous === undefined) return;
  const added = entries.filter((entry) => !previous.includes(entry));
  const removed = previous.filter((entry) => !entries.includes(entry));
  if (added.length + removed.length === 0) return;
  const message = `addresses that came: ${listed(added)}; addresses that went: ${listed(removed)}`;
  publishNotice({ guard: factoryName, code: "allowlist-changed", message });
}

const maxTold = 5;

// They are rules by now: nothing in them needs escaping.
function listed(entries: readonly string[]): string {
  const more = entries.length > maxTold ? ` and ${entries.length - maxTold} more` : "";
  return entries.length === 0 ? "none" : entries.slice(0, maxTold).join(", ") + more;
}

/** A list that a function gives for each request: compiled again when it is another one than before. */
export function matcherOfFunction(
  give: () => unknown,
  { dangerouslyAllowAnyAddress }: { readonly dangerouslyAllowAnyAddress: boolean },
): AddressMatcher {
  let last: ReadList | undefined;
  let wasEmpty = false;
  return (address) => {
    const given = give();
    if (typeof given === "function") {
      const isAllowed: unknown = Reflect.apply(given, undefined, [address]);
      if (typeof isAllowed === "boolean") return isAllowed;
      throw new TypeError("ipAllowlist: the function of allow gave a function that is no matcher");
    }
    // By its entries, not by its identity: a list may be changed in place.
    if (last === undefined || !isSame(given, last.entries)) {
      last = compileEntries(given, { owner: "ipAllowlist", name: "allow()", dangerouslyAllowAnyAddress });
      const isEmpty = last.entries.length === 0;
      if (isEmpty && !wasEmpty) {
        const message = "the function of allow gives an empty list: everybody is refused";
        publishFailure({ guard: "ipAllowlist", code: "allowlist-empty", message });
      }
      wasEmpty = isEmpty;
    }
    return last.isAllowed(address);
  };
}

function isSame(given: unknown, entries: readonly string[]): boolean {
  return (
    Array.isArray(given) &&
    given.length === entries.length &&
    entries.every((entry, index) => given[index] === entry)
  );
}
