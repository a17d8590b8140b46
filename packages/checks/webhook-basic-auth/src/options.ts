import { OptionError } from "@countersign/core";
import {
  holderOf,
  option,
  optionError,
  readOptions,
  type BuiltFact,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/door";
import { compileCredentials, isUserPassText, serializeToken, type CredentialMatcher } from "./credentials.ts";

/** A username and password. Neither is empty or holds control characters; the username holds no colon (RFC 7617 section 2). */
export interface BasicAuthCredential {
  readonly username: string;
  readonly password: string;
}

/** Decides about a username and password, both non-empty. Only exactly `true`, or a promise of it, admits the request. `Native` is the request of the framework. */
export type VerifyCredential<Native> = (
  username: string,
  password: string,
  req: Native,
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
interface VerifyForm<Native> {
  readonly verify: VerifyCredential<Native>;
  /** How long `verify` may take, in milliseconds, before the answer is 503. Default 2,000. */
  readonly timeoutMs?: number | undefined;
  readonly username?: undefined;
  readonly password?: undefined;
  readonly credentials?: undefined;
}

/** Options of `webhookBasicAuth`: exactly one of `username` with `password`, `credentials`, and `verify`. */
export type WebhookBasicAuthOptions<Native> = BasicAuthChallenge &
  (SingleForm | ListForm | VerifyForm<Native>);

const credentialTable: OptionTable<BasicAuthCredential> = {
  username: option.own(readUsername),
  password: option.own(readPassword),
};

export const table = {
  username: option.optional(credentialTable.username),
  password: option.shown(option.optional(credentialTable.password), (password) =>
    showPasswords(password === undefined ? [] : [{ password }]),
  ),
  credentials: option.shown(option.optional(option.own(readCredentials)), showPasswords),
  verify: option.optional(option.call<VerifyCredential<never>>()),
  timeoutMs: option.integer({ min: 1, max: 60_000, fallback: 2000 }),
  realm: option.own(readRealm, '"webhook"'),
  status: option.integer({ min: 400, max: 499, fallback: 401 }),
} satisfies OptionTable<WebhookBasicAuthOptions<never>, unknown>;

/** The options with defaults, checked and compiled. */
export interface ResolvedBasicAuthOptions<Native> {
  readonly realm: string;
  readonly status: number;
  /** Who decides: a matcher of tokens, or the app. */
  readonly authority: CredentialMatcher | VerifyAuthority<Native>;
}

/** The function of the app and its time-out. */
export interface VerifyAuthority<Native> {
  readonly verify: VerifyCredential<Native>;
  readonly timeoutMs: number;
}

/** Throws an OptionError, which shows neither a username nor a password. */
export function resolveOptions<Native>(
  options: WebhookBasicAuthOptions<Native>,
  owner: OptionOwner,
): ResolvedBasicAuthOptions<Native> {
  const read = readOptions(owner, table, options);
  return { authority: resolveAuthority(owner, options, read), realm: read.realm, status: read.status };
}

function resolveAuthority<Native>(
  owner: OptionOwner,
  { username, password, verify, timeoutMs }: WebhookBasicAuthOptions<Native>,
  read: ReadOptions<typeof table>,
): ResolvedBasicAuthOptions<Native>["authority"] {
  const single = username !== undefined || password !== undefined;
  const forms = [single, read.credentials !== undefined, verify !== undefined];
  if (forms.filter(Boolean).length !== 1) {
    const what =
      "give exactly one of username with password, credentials, and verify; " +
      "an unset environment variable must not leave the endpoint open";
    throw new OptionError(owner, { what });
  }
  if (verify !== undefined) return { verify, timeoutMs: read.timeoutMs };
  if (timeoutMs !== undefined) {
    throw new OptionError(owner, { option: "timeoutMs", what: "has a meaning beside verify only" });
  }
  return compileCredentials(
    read.credentials ?? [readOptions(owner, credentialTable, { username, password })],
  );
}

const shortPassword = 12;

function showPasswords(credentials: readonly { readonly password: string }[] = []): BuiltFact {
  return { short: credentials.some(({ password }) => password.length < shortPassword) };
}

function readCredentials(
  credentials: unknown,
  owner: OptionOwner,
  name: string,
): readonly BasicAuthCredential[] {
  if (!Array.isArray(credentials) || credentials.length === 0) {
    throw optionError(owner, name, "a non-empty array of { username, password }", credentials);
  }
  // Array.from visits the holes of a sparse array too.
  const read = Array.from(credentials, (credential: unknown, index) =>
    readOptions(holderOf(owner, `${name}[${index}]`), credentialTable, credential),
  );
  const tokens = new Set(read.map(({ username, password }) => serializeToken(username, password)));
  if (tokens.size === read.length) return read;
  throw new OptionError(owner, { option: name, what: "has one username and password twice" });
}

function readUsername(username: unknown, owner: OptionOwner, name: string): string {
  if (isUserPassText(username) && !username.includes(":")) return username;
  throw optionError(owner, name, "a non-empty string without colons and control characters", username);
}

function readPassword(password: unknown, owner: OptionOwner, name: string): string {
  if (isUserPassText(password)) return password;
  throw optionError(owner, name, "a non-empty string without control characters", password);
}

function readRealm(realm: unknown = "webhook", owner: OptionOwner, name: string): string {
  if (typeof realm === "string" && /^[\x20-\x7e]+$/.test(realm) && !/["\\]/.test(realm)) return realm;
  throw optionError(owner, name, "printable ASCII without quotation marks and backslashes", realm);
}
