/** `target` is the text that was given, never normalised. */
export interface PayoutUrl {
  readonly scheme: "http" | "https";
  /** Host and port as in the Host header. */
  readonly authority: string;
  /** For the connection: a host name, or an IP address without brackets. */
  readonly hostname: string;
  readonly port: number;
  readonly target: string;
}

const absoluteUrl = /^(https?):\/\/([^/?#\\@\s]+)([/?][^#]*)?$/i;
const visibleAscii = /^[\x21-\x7e]+$/;

/** Splits an http(s) URL but keeps its path: `new URL()` would rewrite it, and it is sent as signed. Throws a TypeError. */
export function parsePayoutUrl(url: string): PayoutUrl {
  const match = absoluteUrl.exec(url);
  if (match === null) {
    throw new TypeError(
      "the URL must be http://host/path or https://host/path, without credentials and fragment",
    );
  }
  const scheme = match[1]?.toLowerCase() === "https" ? "https" : "http";
  const given = match[3] ?? "/";
  const target = given.startsWith("?") ? `/${given}` : given;
  assertTarget(target);
  const origin = parseOrigin(`${scheme}://${match[2] ?? ""}/`);
  return {
    scheme,
    authority: origin.host,
    hostname: origin.hostname.replace(/^\[|\]$/g, ""),
    port: origin.port === "" ? (scheme === "https" ? 443 : 80) : Number(origin.port),
    target,
  };
}

/** Throws a TypeError when `target` cannot stand in a request line. */
export function assertTarget(target: string): void {
  if (!visibleAscii.test(target)) {
    throw new TypeError("the path must be printable ASCII without spaces; percent-encode the rest");
  }
}

function parseOrigin(origin: string): URL {
  try {
    return new URL(origin);
  } catch {
    throw new TypeError("the URL has a host or port that cannot be used");
  }
}
