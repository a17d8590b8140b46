import {
  assertFunction,
  assertKnownOptions,
  integerOption,
  optionError,
  type GuardRequest,
} from "@countersign/guard";
import { compileCredentials, type CredentialMatcher } from "./credentials.ts";
import { isUserPassText, serializeToken } from "./user-pass.ts";

/** A username and password. Neither is empty or holds control characters; the username holds no colon (RFC 7617 section 2). */
export interface BasicAuthCredential {
  readonly username: string;
  readonly password: string;
}

/** Decides about a username and password, both non-empty. Only exactly `true`, or a promise of it, admits the request. */
export type VerifyCredential = (
  username: string,
  password: string,
  req: GuardRequest,
) => boolean | Promise<boolean>;

/** How a refusal is answered. */
export interface BasicAuthChallenge {
  /** The realm that a 401 names: printable ASCII without `"` and `\`. Default `webhook`. */
  readonly realm?: string | undefined;
  /** The status of a refusal, 400 to 499. Default 401. */
  readonly status?: number | undefined;
}

/** One credential. */
interface SingleForm extends BasicAuthCredential {
  readonly credentials?: undefined;
  readonly verify?: undefined;
  readonly timeoutMs?: undefined;
}

/** Several credentials, of which each admits: for rotation. Not empty, none twice. */
interface ListForm {
  readonly credentials: readonly BasicAuthCredential[];
  readonly username?: undefined;
  readonly password?: undefined;
  readonly verify?: undefined;
  readonly timeoutMs?: undefined;
}

/** A function that decides, for credentials kept elsewhere. */
interface VerifyForm {
  readonly verify: VerifyCredential;
  /** How long `verify` may take, in milliseconds, before the answer is 503. Default 2,000. */
  readonly timeoutMs?: number | undefined;
  readonly username?: undefined;
  readonly password?: undefined;
  readonly credentials?: undefined;
}

/** Options of `webhookBasicAuth`: exactly one of `username` with `password`, `credentials`, and `verify`. */
export type WebhookBasicAuthOptions = BasicAuthChallenge & (SingleForm | ListForm | VerifyForm);

/** The options with defaults, checked and compiled. */
export interface ResolvedOptions {
  readonly realm: string;
  readonly status: number;
  /** Who decides: a matcher of tokens, or the app. */
  readonly authority: CredentialMatcher | VerifyAuthority;
}

/** The function of the app and its time-out. */
export interface VerifyAuthority {
  readonly verify: VerifyCredential;
  readonly timeoutMs: number;
}

const factory = "webhookBasicAuth";
const known = ["username", "password", "credentials", "verify", "timeoutMs", "realm", "status"];

/** Throws a TypeError that names the option, and shows neither a username nor a password. */
export function resolveOptions(options: WebhookBasicAuthOptions): ResolvedOptions {
  assertKnownOptions(factory, options, known);
  return {
    authority: resolveAuthority(options),
    realm: resolveRealm(options.realm),
    status: integerOption(factory, "status", options.status, { min: 400, max: 499, fallback: 401 }),
  };
}

function resolveAuthority(options: WebhookBasicAuthOptions): ResolvedOptions["authority"] {
  const { username, password, credentials, verify, timeoutMs } = options;
  const single = username !== undefined || password !== undefined;
  if ([single, credentials !== undefined, verify !== undefined].filter(Boolean).length !== 1) {
    throw new TypeError(
      `${factory}: give exactly one of username with password, credentials, and verify; ` +
        "an unset environment variable must not leave the endpoint open",
    );
  }
  if (verify === undefined && timeoutMs !== undefined) {
    throw new TypeError(`${factory}: option timeoutMs has a meaning beside verify only`);
  }
  if (verify !== undefined) return resolveVerify(verify, timeoutMs);
  return compileCredentials(
    credentials === undefined ? [resolveCredential("", { username, password })] : resolveList(credentials),
  );
}

function resolveVerify(verify: VerifyCredential, timeoutMs: number | undefined): VerifyAuthority {
  assertFunction(factory, "verify", verify);
  return {
    verify,
    timeoutMs: integerOption(factory, "timeoutMs", timeoutMs, { min: 1, max: 60_000, fallback: 2000 }),
  };
}

function resolveList(credentials: readonly BasicAuthCredential[]): readonly BasicAuthCredential[] {
  if (!Array.isArray(credentials) || credentials.length === 0) {
    throw optionError(factory, "credentials", "a non-empty array of { username, password }", credentials);
  }
  // Array.from visits the holes of a sparse array too.
  const resolved = Array.from(credentials, (credential, index) => {
    assertKnownOptions(`${factory}: credentials[${index}]`, credential, ["username", "password"]);
    return resolveCredential(`credentials[${index}].`, credential);
  });
  const tokens = new Set(resolved.map(({ username, password }) => serializeToken(username, password)));
  if (tokens.size !== resolved.length) {
    throw new TypeError(`${factory}: option credentials has one username and password twice`);
  }
  return resolved;
}

function resolveCredential(
  prefix: string,
  { username, password }: { readonly username?: unknown; readonly password?: unknown },
): BasicAuthCredential {
  if (!isUserPassText(username) || username.includes(":")) {
    const expected = "a non-empty string without colons and control characters";
    throw optionError(factory, `${prefix}username`, expected, username);
  }
  if (!isUserPassText(password)) {
    const expected = "a non-empty string without control characters";
    throw optionError(factory, `${prefix}password`, expected, password);
  }
  return { username, password };
}

function resolveRealm(realm = "webhook"): string {
  if (typeof realm !== "string" || !/^[\x20-\x7e]+$/.test(realm) || /["\\]/.test(realm)) {
    throw optionError(factory, "realm", "printable ASCII without quotation marks and backslashes", realm);
  }
  return realm;
}
