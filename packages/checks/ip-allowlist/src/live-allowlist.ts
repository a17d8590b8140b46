import {
  inTime,
  RefreshingValue,
  option,
  publishFailure,
  publishNotice,
  readOptions,
  type OptionTable,
} from "@countersign/core/internal";
import type { AddressMatcher } from "./address.ts";
import { compileEntries, rulesTable, type ReadList } from "./allowlist.ts";

export interface AddressSource {
  /** Whether a client address is in the list. Throws an Error while there is no good list. */
  readonly isAllowed: AddressMatcher;
}

/** Each load replaces the whole list. */
export interface LiveAllowlist extends AddressSource {
  /** Resolves with the first list; rejects when that cannot be loaded. Await it before the server listens. */
  ready(): Promise<void>;
  /**
   * Loads the list now, or once more after the load under way, which may have missed the latest change. Rejects when that fails; the last
   * good list stays in use.
   */
  refresh(): Promise<void>;
  /** The present list; empty before the first load. */
  entries(): readonly string[];
  /** Stops timers and loads. Every address is refused from then on. */
  close(): void;
}

export interface LiveAllowlistOptions {
  /** Returns all addresses and CIDR blocks that may call. One bad entry makes the list unusable; an empty list refuses everybody. */
  readonly load: (signal: AbortSignal) => readonly string[] | Promise<readonly string[]>;
  /** The interval of loads, in seconds. Default 300. */
  readonly refreshSeconds?: number | undefined;
  /** The pause after a failed load, in seconds. Default 30. */
  readonly cooldownSeconds?: number | undefined;
  /** How old the last good list may get, in seconds; after that everybody is refused. Default 86,400. */
  readonly maxAgeSeconds?: number | undefined;
  /** How long a load may take, in milliseconds. Default 5,000. */
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
 * Reloads a list of addresses. When a load fails, or is no list of rules, the last good list stays for `maxAgeSeconds`, with one notice on
 * `countersign:notice`; without a good list everybody is refused. Throws an OptionError on a bad option.
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
      // Once until it succeeds: it is tried every few seconds.
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
    refresh: () => live.refreshAgain(),
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
  const [before, now] = [new Set(previous), new Set(entries)];
  const added = entries.filter((entry) => !before.has(entry));
  const removed = previous.filter((entry) => !now.has(entry));
  if (added.length + removed.length === 0) return;
  const message = `addresses that came: ${listed(added)}; addresses that went: ${listed(removed)}`;
  publishNotice({ guard: factoryName, code: "allowlist-changed", message });
}

const maxTold = 5;

// All of them parsed as rules: nothing in them needs escaping.
function listed(entries: readonly string[]): string {
  const more = entries.length > maxTold ? ` and ${entries.length - maxTold} more` : "";
  return entries.length === 0 ? "none" : entries.slice(0, maxTold).join(", ") + more;
}
