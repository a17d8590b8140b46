import {
  option,
  optionError,
  splitOptions,
  systemClock,
  type NonceStore,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core";
import {
  importVerificationKey,
  isVerificationKey,
  type PublicKeyInput,
  type VerificationKey,
} from "@countersign/http-message-signatures";
import {
  assertVerifyOptions,
  type ConfiguredKey,
  type HttpSignatureVerifyOptions,
} from "@countersign/http-signature-verify";

/** Those of httpSignatureVerify that say what a signature has to be, and these. */
export interface ExplainSignatureOptions extends Omit<
  HttpSignatureVerifyOptions,
  "engine" | "keys" | "limit" | "nonces" | "storeTimeoutMs" | "threadPool"
> {
  /** The public keys by keyid, a record or a Map. All of them are tried, at most 100. */
  readonly keys: Readonly<Record<string, ConfiguredKey>> | ReadonlyMap<string, ConfiguredKey>;
  /** The signature base as the signer has made it: where nothing fits, it is compared with the expected one. Default none. */
  readonly signerBase?: string | undefined;
  /** Path prefixes that are tried before `@path`. Default `/api`, `/api/v1`, `/v1`, `/v2`, `/payments`, `/payout`. */
  readonly pathPrefixes?: readonly string[] | undefined;
  /** Signatures that are verified at most. Default 2,000. */
  readonly maxAttempts?: number | undefined;
}

/** What is the explanation's own; the rest is for the check. */
export interface OwnOptions {
  readonly keys: ReadonlyMap<string, VerificationKey>;
  readonly signerBase: string | undefined;
  readonly pathPrefixes: readonly string[];
  readonly maxAttempts: number;
}

type Own = Pick<ExplainSignatureOptions, "keys" | "maxAttempts" | "pathPrefixes" | "signerBase">;

const maxBaseLength = 65_536;

/** The rules of the options that no check has. */
export const table: OptionTable<Own, OwnOptions> = {
  keys: option.own(readKeys),
  signerBase: option.optional(option.own(readBase)),
  pathPrefixes: option.own(readPrefixes, '`["/api", "/api/v1", "/v1", "/v2", "/payments", "/payout"]`'),
  maxAttempts: option.integer({ min: 0, max: 100_000, fallback: 2000 }),
};

// Who times stores sees by this that no request has waited.
const engine = "explain";
const anyNonce: NonceStore = { engine, claim: () => "fresh" };

/** The options of an explanation, and those of the check whose verdict it explains. Throws an OptionError. */
export function readExplainOptions(
  owner: OptionOwner,
  options: ExplainSignatureOptions,
): {
  readonly own: OwnOptions;
  readonly check: HttpSignatureVerifyOptions;
} {
  const [own, rest] = splitOptions(owner, table, options);
  const { keys } = own;
  // An explanation claims no nonce: the request that it explains would be a replay.
  const fixed = { keys: { engine, get: (keyid: string) => keys.get(keyid) }, nonces: anyNonce };
  const check = { clock: systemClock, ...rest, ...fixed };
  assertVerifyOptions(check, owner);
  return { own, check };
}

function readKeys(
  keys: unknown,
  ownerOfKeys: OptionOwner,
  name: string,
): ReadonlyMap<string, VerificationKey> {
  const entries: readonly (readonly [unknown, unknown])[] =
    keys instanceof Map ? [...keys] : isRecord(keys) ? Object.entries(keys) : [];
  if (entries.length === 0) {
    throw optionError(ownerOfKeys, name, "a record or Map of keyid to public key, not empty", keys);
  }
  return new Map(
    entries.map(([keyid, key]): [string, VerificationKey] => {
      if (typeof keyid !== "string") throw optionError(ownerOfKeys, name, "keys by keyid", keyid);
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- importVerificationKey refuses everything else
      return [keyid, isVerificationKey(key) ? key : importVerificationKey(keyid, key as PublicKeyInput)];
    }),
  );
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function readBase(base: unknown, ownerOfBase: OptionOwner, name: string): string {
  if (typeof base === "string" && base.length <= maxBaseLength) return base;
  throw optionError(ownerOfBase, name, `a text of at most ${maxBaseLength} characters`, base);
}

const usualPrefixes = ["/api", "/api/v1", "/v1", "/v2", "/payments", "/payout"];

function readPrefixes(
  prefixes: unknown = usualPrefixes,
  ownerOfThem: OptionOwner,
  name: string,
): readonly string[] {
  if (Array.isArray(prefixes) && prefixes.length <= 20 && prefixes.every(isPrefix)) return [...prefixes];
  throw optionError(ownerOfThem, name, 'a list of at most 20 paths such as "/payments"', prefixes);
}

function isPrefix(prefix: unknown): prefix is string {
  return typeof prefix === "string" && /^\/[!-~]{0,200}$/.test(prefix);
}
