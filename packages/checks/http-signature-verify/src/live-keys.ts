import { quoteForLog } from "@countersign/core";
import { RefreshingValue, publishFailure, publishNotice } from "@countersign/core/door";
import type { ImportedKeys, VerificationKey } from "@countersign/http-message-signatures";
import type { KeyStore } from "./key-store.ts";

/** A KeyStore that reads its keys again by itself, as one set that is replaced whole. */
export interface LiveKeyStore extends KeyStore {
  /** Resolves when there is a set; rejects when the first one cannot be had. Await it before the server listens. */
  ready(): Promise<void>;
  /** Reads the set now, or joins the reading under way. Rejects when it cannot be had; the last good one stays in use. */
  refresh(): Promise<void>;
  /** The keys of the present set; none before there is one. */
  keys(): readonly VerificationKey[];
  /** Ends timers, watchers and what is under way. Every later look-up rejects. */
  close(): void;
}

/** A set as it was read. Times in milliseconds from the reading on. */
interface LoadedKeys extends ImportedKeys {
  /** When it is read again in the background. */
  readonly refreshMs: number;
  /** For how long it is used without asking, at least `refreshMs`. */
  readonly freshMs: number;
}

/** Where a set comes from, and how often it is asked for. */
export interface LiveKeysSource {
  /** Whose notices they are. */
  readonly guard: string;
  /** Rejects when there is no usable document. */
  readonly load: (signal: AbortSignal) => Promise<LoadedKeys>;
  /** After an attempt, no request causes another one for as long. */
  readonly cooldownMs: number;
  /** How long a set is used beyond its `freshMs` while no other can be had. */
  readonly staleMs: number;
  /** Whether an unknown keyid causes a reading, once the cool-down is over. Default false. */
  readonly readsForUnknown?: boolean | undefined;
  /** Milliseconds that never go back. */
  readonly clock: () => number;
  readonly onClose?: (() => void) | undefined;
}

/** The set of a source: single flight, refreshed ahead of its end, kept over failures for a bounded time. */
export class LiveKeys implements LiveKeyStore {
  /** The factory: `jwksKeys` and its like. */
  readonly engine: string;
  readonly #source: LiveKeysSource;
  readonly #live: RefreshingValue<LoadedKeys>;
  #publishedFaults = "";

  constructor(source: LiveKeysSource) {
    this.#source = source;
    this.engine = source.guard;
    const { guard, clock, cooldownMs, onClose } = source;
    this.#live = new RefreshingValue<LoadedKeys>({
      guard,
      load: async (signal, previous) => {
        const value = await this.#load(signal, previous);
        return { value, refreshMs: value.refreshMs };
      },
      cooldownMs,
      clock,
      closedBecause: "the key store is closed",
      onFailure(error, hasSet) {
        const message = hasSet ? "the last good set of keys stays in use" : "there is no set of keys";
        publishFailure({ guard, code: "keys-not-refreshed", message, error });
      },
      onClose,
    });
  }

  // Not async: a key of a fresh set costs no turn of the event loop.
  get(keyid: string): VerificationKey | undefined | Promise<VerificationKey | undefined> {
    if (this.#live.isClosed) return Promise.reject(this.#live.closed());
    const ageMs = this.#live.ageMs();
    const set = this.#live.value;
    if (set === undefined || ageMs >= set.freshMs) return this.#getFromNextSet(keyid);
    // Also where no timer runs, or one is late.
    if (ageMs >= set.refreshMs && this.#live.mayAttempt()) this.#live.refreshInBackground();
    return set.keys.get(keyid) ?? this.#getUnknown(keyid);
  }

  ready(): Promise<void> {
    return this.#live.ready();
  }

  refresh(): Promise<void> {
    return this.#live.refresh();
  }

  keys(): readonly VerificationKey[] {
    return [...(this.#live.value?.keys.values() ?? [])];
  }

  close(): void {
    this.#live.close();
  }

  /**
   * A key that was published a moment ago may be in the next set: strangers make this ask, once in each cool-down. No keyid is
   * remembered: who asks for the next key before it is published would keep it unknown.
   */
  #getUnknown(keyid: string): undefined | Promise<VerificationKey | undefined> {
    if (this.#source.readsForUnknown !== true) return undefined;
    if (this.#live.mayWait()) return this.#getAfter(this.refresh(), keyid);
    // Whether the key exists is in doubt while the set cannot be read.
    const { failure } = this.#live;
    return failure === undefined ? undefined : Promise.reject(failure);
  }

  async #getAfter(refresh: Promise<void>, keyid: string): Promise<VerificationKey | undefined> {
    await refresh;
    return this.#live.value?.keys.get(keyid);
  }

  async #getFromNextSet(keyid: string): Promise<VerificationKey | undefined> {
    const mayWait = this.#live.mayWait();
    // Where the last attempt has failed, a key that is known does not wait for the next one to fail as slowly.
    const kept = this.#live.failure === undefined ? undefined : this.#keptKey(keyid);
    if (kept !== undefined) {
      if (mayWait) this.#live.refreshInBackground();
      return kept;
    }
    if (mayWait) {
      try {
        await this.refresh();
        return this.#live.value?.keys.get(keyid);
      } catch {
        // What was known before may do.
      }
    }
    const key = this.#keptKey(keyid);
    if (key !== undefined) return key;
    throw this.#live.failure ?? new Error(`${this.#source.guard}: there is no set of keys`);
  }

  #keptKey(keyid: string): VerificationKey | undefined {
    const set = this.#live.value;
    const isUsable = set !== undefined && this.#live.ageMs() < set.freshMs + this.#source.staleMs;
    return isUsable ? set.keys.get(keyid) : undefined;
  }

  async #load(signal: AbortSignal, previous: LoadedKeys | undefined): Promise<LoadedKeys> {
    const loaded = await this.#source.load(signal);
    if (signal.aborted) throw this.#live.closed();
    this.#publishFaults(loaded);
    if (loaded.keys.size === 0 && loaded.faults.length > 0) throw new Error("no key of the set can be used");
    this.#publishChanges(loaded, previous);
    return loaded;
  }

  // Once for as long as they stay the same: a set is read every few minutes.
  #publishFaults({ faults }: ImportedKeys): void {
    const published = faults.map(({ keyid, error }) => `${shown(keyid)}: ${error.message}`).join("; ");
    if (published === this.#publishedFaults) return;
    this.#publishedFaults = published;
    for (const { keyid, error } of faults.slice(0, maxPublished)) {
      const message = `the key ${shown(keyid)} is left out`;
      publishFailure({ guard: this.#source.guard, code: "key-left-out", message, error });
    }
  }

  #publishChanges({ keys }: ImportedKeys, previous: LoadedKeys | undefined): void {
    const before = previous?.keys ?? new Map<string, VerificationKey>();
    const added = [...keys.keys()].filter((keyid) => !before.has(keyid));
    const removed = [...before.keys()].filter((keyid) => !keys.has(keyid));
    if (added.length + removed.length === 0) return;
    const message = `keys that came: ${listed(added)}; keys that went: ${listed(removed)}`;
    publishNotice({ guard: this.#source.guard, code: "keys-changed", message });
  }
}

const maxPublished = 5;

function listed(keyids: readonly string[]): string {
  const more = keyids.length > maxPublished ? ` and ${keyids.length - maxPublished} more` : "";
  return keyids.length === 0 ? "none" : keyids.slice(0, maxPublished).map(shown).join(", ") + more;
}

function shown(keyid: string | undefined): string {
  return keyid === undefined ? "without a keyid" : quoteForLog(keyid);
}
