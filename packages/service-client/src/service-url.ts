/** Where a URL may lead. */
export interface UrlRules {
  /** What the message begins with, for example `createServiceClient: option baseUrl`. */
  readonly subject: string;
  /** Accept http to a loopback host. */
  readonly allowLoopbackHttp: boolean;
}

const absoluteUrl = /^https?:\/\/[^/?#\\@]+(?<path>\/[^?#\\]*)?(?<query>\?[^#\\]*)?$/i;
const visibleAscii = /^[\x21-\x7e]+$/;

/**
 * Throws a TypeError, which does not show the URL, unless it is https (or the exception) and the URL that everybody reads in
 * it: no credentials, no fragment, no path that a parser would rewrite.
 */
export function assertServiceUrl(
  text: unknown,
  { subject, allowLoopbackHttp }: UrlRules,
): asserts text is string {
  if (typeof text !== "string") throw new TypeError(`${subject} must be a string`);
  const parts = absoluteUrl.exec(text)?.groups;
  if (parts === undefined || !visibleAscii.test(text)) {
    throw new TypeError(`${subject} must be https://host/path in ASCII, without credentials and fragment`);
  }
  const url = parseUrl(text, subject);
  if (url.pathname !== (parts["path"] ?? "/")) {
    throw new TypeError(`${subject} must have no dot segments, and a path that is percent-encoded`);
  }
  if (url.protocol !== "https:" && !(allowLoopbackHttp && isLoopback(url.hostname))) {
    throw new TypeError(
      `${subject} must be https; http is for a loopback host (127.0.0.1, [::1], localhost)` +
        (allowLoopbackHttp ? "" : " with dangerouslyAllowHttp: true"),
    );
  }
}

/** Appends `path`, which begins with a slash, to a base URL with or without a slash at its end. Throws a TypeError. */
export function joinServiceUrl(baseUrl: unknown, path: string, rules: UrlRules): string {
  assertServiceUrl(baseUrl, rules);
  if (baseUrl.includes("?")) throw new TypeError(`${rules.subject} must have no query`);
  const base = baseUrl.endsWith("/") ? baseUrl.slice(0, -1) : baseUrl;
  if (base.indexOf("//", "https://".length) !== -1 || base.endsWith("/")) {
    throw new TypeError(`${rules.subject} must have no empty path segment`);
  }
  return `${base}${path}`;
}

function parseUrl(text: string, subject: string): URL {
  try {
    return new URL(text);
  } catch {
    // The error of URL shows its input.
    throw new TypeError(`${subject} has a host or port that cannot be used`);
  }
}

function isLoopback(hostname: string): boolean {
  return /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}
