const absoluteUrl = /^https?:\/\/[^/?#\\@]+(?<path>\/[^?#\\]*)?(?<query>\?[^#\\]*)?$/i;
const visibleAscii = /^[\x21-\x7e]+$/;

/** Why a URL is refused, without showing it: no https (or the exception), credentials, a fragment, a path that a parser rewrites. */
export function serviceUrlFault(text: string, allowLoopbackHttp: boolean): string | undefined {
  const parts = absoluteUrl.exec(text)?.groups;
  if (parts === undefined || !visibleAscii.test(text)) {
    return "must be https://host/path in ASCII, without credentials and fragment";
  }
  if (!URL.canParse(text)) return "has a host or port that cannot be used";
  const url = new URL(text);
  if (url.pathname !== (parts["path"] ?? "/")) {
    return "must have no dot segments, and a path that is percent-encoded";
  }
  if (url.protocol === "https:" || (allowLoopbackHttp && isLoopback(url.hostname))) return undefined;
  return (
    "must be https; http is for a loopback host (127.0.0.1, [::1], localhost)" +
    (allowLoopbackHttp ? "" : " with dangerouslyAllowHttp: true")
  );
}

/** {@link serviceUrlFault} of a URL to which a path is appended. */
export function baseUrlFault(baseUrl: string, allowLoopbackHttp: boolean): string | undefined {
  const fault = serviceUrlFault(baseUrl, allowLoopbackHttp);
  if (fault !== undefined) return fault;
  if (baseUrl.includes("?")) return "must have no query";
  const base = withoutLastSlash(baseUrl);
  return base.includes("//", "https://".length) || base.endsWith("/")
    ? "must have no empty path segment"
    : undefined;
}

/** Appends `path`, which begins with a slash, to a base URL without fault. */
export function appendPath(baseUrl: string, path: string): string {
  return `${withoutLastSlash(baseUrl)}${path}`;
}

function withoutLastSlash(url: string): string {
  return url.endsWith("/") ? url.slice(0, -1) : url;
}

function isLoopback(hostname: string): boolean {
  return /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}
