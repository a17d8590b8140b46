import { assertFunction, assertKnownOptions, integerOption } from "@countersign/guard";
import type { VerificationKey } from "@countersign/http-message-signatures";
import { LRUCache } from "lru-cache";
import { vet, type ConfiguredKey, type KeyStore } from "./key-store.ts";

/** Options of {@link cachedKeyStore}. */
export interface CachedKeyStoreOptions {
  /** How long a key is used without asking again, in seconds. Default 300. A withdrawn key is accepted for as long. */
  readonly ttlSeconds?: number | undefined;
  /** How long a keyid stays unknown without asking again, in seconds. Default 10. */
  readonly negativeTtlSeconds?: number | undefined;
  /** Known and unknown keyids remembered at most, each. Default 1,000. */
  readonly max?: number | undefined;
}

/**
 * A bounded cache before a slow key source. Concurrent look-ups of one keyid share one call; unknown keyids have a cache of
 * their own, so that a flood of them evicts no key; an error is not cached. Keys that are not imported yet are vetted once.
 */
export function cachedKeyStore(
  lookup: (keyid: string) => ConfiguredKey | undefined | Promise<ConfiguredKey | undefined>,
  options: CachedKeyStoreOptions = {},
): KeyStore {
  const factory = "cachedKeyStore";
  assertFunction(factory, "lookup", lookup);
  assertKnownOptions(factory, options, ["ttlSeconds", "negativeTtlSeconds", "max"]);
  const seconds = { min: 1, max: 86_400 };
  const ttl = integerOption(factory, "ttlSeconds", options.ttlSeconds, { ...seconds, fallback: 300 }) * 1000;
  const negativeTtl =
    integerOption(factory, "negativeTtlSeconds", options.negativeTtlSeconds, { ...seconds, fallback: 10 }) *
    1000;
  const max = integerOption(factory, "max", options.max, { min: 1, max: 1_000_000, fallback: 1000 });
  const known = new LRUCache<string, VerificationKey>({ max, ttl });
  const unknown = new LRUCache<string, true>({ max, ttl: negativeTtl });
  const underWay = new Map<string, Promise<VerificationKey | undefined>>();

  const load = async (keyid: string): Promise<VerificationKey | undefined> => {
    const found = await lookup(keyid);
    if (found === undefined) {
      unknown.set(keyid, true);
      return undefined;
    }
    const key = vet(factory, keyid, found);
    known.set(keyid, key);
    return key;
  };

  return {
    get(keyid) {
      const key = known.get(keyid);
      if (key !== undefined || unknown.has(keyid)) return key;
      const pending = underWay.get(keyid);
      if (pending !== undefined) return pending;
      const loading = load(keyid).finally(() => underWay.delete(keyid));
      underWay.set(keyid, loading);
      return loading;
    },
  };
}
