import { randomBytes } from "node:crypto";
import {
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core/internal";

export interface GenerateEndpointOptions {
  /** The platform's https URL as the service reaches it, without user, query and fragment; a path precedes the generated one. */
  readonly baseUrl: string;
  /** Accept an http URL of this machine (`localhost`, `127.0.0.0/8`, `[::1]`), for local work. Default false. */
  readonly dangerouslyAllowHttp?: boolean | undefined;
}

export const table = {
  baseUrl: option.own(readBaseUrl),
  dangerouslyAllowHttp: option.boolean(false),
} satisfies OptionTable<GenerateEndpointOptions, unknown>;

/** Keep it secret, and give it to the service once. */
export interface GeneratedEndpoint {
  readonly url: string;
  /** The path of `url`, for `app.use(path, ...)`: its last segment is lower-case hex with 160 random bits. */
  readonly path: string;
  /** For HTTP basic authentication: lower-case hex with 128 random bits. */
  readonly username: string;
  /** For HTTP basic authentication: lower-case hex with 256 random bits. */
  readonly password: string;
  /** The signature secret: lower-case hex with 256 random bits. The service uses the text itself as the key. */
  readonly secret: string;
  /** The same values as customer support takes them, who configure the endpoint in place of the API. */
  readonly supportForm: SupportForm;
}

/** Under the names of the spec, "Create webhook endpoint": its API says `auth_username` and `auth_password`. */
interface SupportForm {
  readonly url: string;
  readonly basic_auth_username: string;
  readonly basic_auth_password: string;
  readonly signature_secret: string;
}

/** Generates an endpoint's path and credentials (spec, "Calls from the service to a webhook endpoint"). Throws an OptionError. */
export function generateEndpoint(options: GenerateEndpointOptions): GeneratedEndpoint {
  const { baseUrl: base, dangerouslyAllowHttp } = readOptions(factoryName, table, options);
  if (base.protocol !== "https:" && !(dangerouslyAllowHttp && isLoopback(base.hostname))) {
    const expected = "an https URL; an http URL of this machine also needs dangerouslyAllowHttp: true";
    throw optionError(factoryName, "baseUrl", expected, options.baseUrl);
  }
  // Express routes ignore case, so upper case would add no bits.
  const path = `${base.pathname.replace(/\/$/, "")}/${randomHex(160)}`;
  const url = base.origin + path;
  const username = randomHex(128);
  const password = randomHex(256);
  const secret = randomHex(256);
  const supportForm = {
    url,
    basic_auth_username: username,
    basic_auth_password: password,
    signature_secret: secret,
  };
  return { url, path, username, password, secret, supportForm };
}

const factoryName = "generateEndpoint";

function readBaseUrl(baseUrl: unknown, owner: OptionOwner, name: string): URL {
  // The URL parser drops white space and turns a backslash into a slash.
  if (
    typeof baseUrl !== "string" ||
    !/^https?:\/\/[^\s\p{Cc}\\]+$/iu.test(baseUrl) ||
    !URL.canParse(baseUrl)
  ) {
    throw optionError(owner, name, "an absolute https URL such as https://platform.example", baseUrl);
  }
  const url = new URL(baseUrl);
  if (url.username !== "" || url.password !== "" || /[?#]/.test(baseUrl)) {
    throw optionError(owner, name, "a URL without user, password, query and fragment", baseUrl);
  }
  // Express reads the path as a pattern: a colon or an asterisk in it would match more than itself.
  if (!/^(?:\/[A-Za-z0-9._~-]+)*\/?$/.test(url.pathname)) {
    const expected = "a URL whose path has only letters, digits, and - . _ ~ between its slashes";
    throw optionError(owner, name, expected, baseUrl);
  }
  return url;
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}

function randomHex(bits: number): string {
  return randomBytes(bits / 8).toString("hex");
}
