import { OptionError } from "@countersign/core";
import {
  holderOf,
  option,
  optionError,
  readOptions,
  readSecretText,
  readUserName,
  type BuiltFact,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core/internal";

/** A username and password. Neither is empty or holds control characters; the username holds no colon (RFC 7617 section 2). */
export interface BasicAuthCredential {
  readonly username: string;
  readonly password: string;
}

export interface BasicAuthChallenge {
  /** The realm that a 401 names: printable ASCII without `"` and `\`. Default `webhook`. */
  readonly realm?: string | undefined;
  /** The status of a refusal, 400 to 499. Default 401. */
  readonly status?: number | undefined;
}

interface SingleForm extends BasicAuthCredential {
  readonly credentials?: undefined;
  readonly verify?: undefined;
  readonly timeoutMs?: undefined;
}

/** Any of these admits, for rotation. Not empty, none twice. */
interface ListForm {
  readonly credentials: readonly BasicAuthCredential[];
  readonly username?: undefined;
  readonly password?: undefined;
  readonly verify?: undefined;
  readonly timeoutMs?: undefined;
}

/** For credentials kept elsewhere. */
interface VerifyForm<Native> {
  /** Gets a username and password, both non-empty. Only exactly `true`, or a promise of it, admits the request. */
  readonly verify: (username: string, password: string, req: Native) => boolean | Promise<boolean>;
  /** How long `verify` may take, in milliseconds, before the answer is 503. Default 2,000. */
  readonly timeoutMs?: number | undefined;
  readonly username?: undefined;
  readonly password?: undefined;
  readonly credentials?: undefined;
}

/** Exactly one of `username` with `password`, `credentials`, and `verify`. `Native` is the request of the framework. */
export type WebhookBasicAuthOptions<Native> = BasicAuthChallenge &
  (SingleForm | ListForm | VerifyForm<Native>);

const credentialTable: OptionTable<BasicAuthCredential> = {
  username: option.own(readUserName),
  password: option.own(readSecretText),
};

export const table = {
  username: option.optional(credentialTable.username),
  password: option.shown(option.optional(credentialTable.password), (password) =>
    showPasswords(password === undefined ? [] : [{ password }]),
  ),
  credentials: option.shown(option.optional(option.own(readCredentials)), showPasswords),
  verify: option.optional(option.call<VerifyForm<never>["verify"]>()),
  timeoutMs: option.integer({ min: 1, max: 60_000, fallback: 2000 }),
  realm: option.own(readRealm, '"webhook"'),
  status: option.integer({ min: 400, max: 499, fallback: 401 }),
} satisfies OptionTable<WebhookBasicAuthOptions<never>, unknown>;

interface ResolvedBasicAuthOptions<Native> {
  readonly realm: string;
  readonly status: number;
  readonly authority: readonly BasicAuthCredential[] | VerifyAuthority<Native>;
}

export interface VerifyAuthority<Native> extends Pick<VerifyForm<Native>, "verify"> {
  readonly timeoutMs: number;
}

/** Throws an OptionError, which shows neither a username nor a password. */
export function resolveOptions<Native>(
  options: WebhookBasicAuthOptions<Native>,
  owner: OptionOwner,
): ResolvedBasicAuthOptions<Native> {
  const { credentials, realm, status, timeoutMs } = readOptions(owner, table, options);
  const { username, password, verify } = options;
  const single = username !== undefined || password !== undefined;
  const forms = [single, credentials !== undefined, verify !== undefined];
  if (forms.filter(Boolean).length !== 1) {
    const what =
      "give exactly one of username with password, credentials, and verify; " +
      "an unset environment variable must not leave the endpoint open";
    throw new OptionError(owner, { what });
  }
  if (verify !== undefined) return { authority: { verify, timeoutMs }, realm, status };
  if (options.timeoutMs !== undefined) {
    throw new OptionError(owner, { option: "timeoutMs", what: "has a meaning beside verify only" });
  }
  const authority = credentials ?? [readOptions(owner, credentialTable, { username, password })];
  return { authority, realm, status };
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
  if (new Set(read.map(serializeToken)).size === read.length) return read;
  throw new OptionError(owner, { option: name, what: "has one username and password twice" });
}

/** Base64 with padding over UTF-8: the only spelling of a user-id and password that is accepted. */
export function serializeToken({ username, password }: BasicAuthCredential): string {
  return Buffer.from(`${username}:${password}`, "utf8").toString("base64");
}

function readRealm(realm: unknown = "webhook", owner: OptionOwner, name: string): string {
  if (typeof realm === "string" && /^[\x20-\x7e]+$/.test(realm) && !/["\\]/.test(realm)) return realm;
  throw optionError(owner, name, "printable ASCII without quotation marks and backslashes", realm);
}
