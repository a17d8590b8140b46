import { fieldLines } from "@countersign/core";
import type { MismatchContext } from "./near-miss.ts";
import { decoded, encoded, type ValueVariant } from "./value-variant.ts";

const prefixHint = "Where a proxy takes this prefix off, set pathPrefix instead.";
const maxSegments = 10;

/** What signers put behind `@path` in place of the path as it is sent. */
export function pathVariants(path: string, context: MismatchContext): readonly ValueVariant[] {
  const query = queryOf(context.target);
  const authority = context.authority ?? "";
  const urls = ["https:", "http:"].flatMap((scheme) => [
    `${scheme}//${authority}${path}`,
    `${scheme}//${authority}${path}${query}`,
  ]);
  return [
    { what: "path-with-query", value: path + query, says: "with the query behind it", isUsual: true },
    ...urls.map((value, index) => ({
      what: "path-full-url",
      value,
      says: "the full URL",
      isUsual: index < 2,
    })),
    { what: "path-with-authority", value: authority + path, says: "with the server before it" },
    { what: "path-with-authority", value: `//${authority}${path}`, says: "with the server before it" },
    {
      what: "path-trailing-slash",
      value: path.endsWith("/") ? path.slice(0, -1) : `${path}/`,
      says: path.endsWith("/") ? "without the slash at its end" : "with a slash at its end",
      isUsual: true,
    },
    { what: "path-decoded", value: decoded(path), says: "decoded", isUsual: true },
    { what: "path-encoded", value: encodedPath(path), says: "encoded once more" },
    { what: "path-encoded", value: encoded(path), says: "with its slashes encoded" },
    { what: "path-encoded", value: hexCase(path, "lower"), says: "its percent-encoding in lower case" },
    { what: "path-encoded", value: hexCase(path, "upper"), says: "its percent-encoding in upper case" },
    { what: "path-encoded", value: path.replaceAll("%20", "+"), says: "with + in place of %20" },
    { what: "path-letter-case", value: path.toLowerCase(), says: "in lower case" },
    { what: "path-letter-case", value: path.toUpperCase(), says: "in upper case" },
    { what: "path-without-leading-slash", value: path.slice(1), says: "without its first slash" },
    {
      what: "path-slashes-merged",
      value: path.replaceAll(/\/{2,}/g, "/"),
      says: "its double slashes merged",
    },
    ...prefixVariants(path, context),
    ...shorterPaths(path),
    { what: "path-empty", value: "", says: "with no path" },
  ];
}

function prefixVariants(path: string, context: MismatchContext): readonly ValueVariant[] {
  const told = [
    "x-forwarded-prefix",
    "x-forwarded-path",
    "x-original-uri",
    "x-original-url",
    "x-envoy-original-path",
    "x-forwarded-uri",
  ].flatMap((name) => fieldLines(context, name).map((line) => line.trim().split("?")[0] ?? ""));
  const whole = told.map((value) => ({
    what: "path-with-prefix",
    value,
    says: "the path that a proxy has received",
    isUsual: true,
    hint: prefixHint,
  }));
  const prefixes = [...told, ...context.pathPrefixes];
  return [
    ...whole,
    ...prefixes.map((prefix) => ({
      what: "path-with-prefix",
      value: (prefix.endsWith("/") ? prefix.slice(0, -1) : prefix) + path,
      says: "with a prefix",
      isUsual: true,
      hint: prefixHint,
    })),
  ];
}

function shorterPaths(path: string): readonly ValueVariant[] {
  const segments = path.split("/");
  const variants: ValueVariant[] = [];
  for (let index = 2; index < segments.length && index <= maxSegments; index += 1) {
    const value = `/${segments.slice(index).join("/")}`;
    variants.push({
      what: "path-without-prefix",
      value,
      says: "without the prefix before it",
      isUsual: index === 2,
    });
    variants.push({
      what: "path-without-end",
      value: segments.slice(0, index).join("/"),
      says: "without its end",
    });
  }
  variants.push({ what: "path-without-end", value: "/", says: "the root" });
  return variants;
}

/** What signers put behind `@query` in place of the query as it is sent. */
export function queryVariants(query: string): readonly ValueVariant[] {
  const text = query.slice(1);
  const parameters = text.split("&");
  const sorted = parameters.slice(0, 100);
  sorted.sort((one, other) => (one < other ? -1 : 1));
  const reversed = [...sorted];
  reversed.reverse();
  return [
    { what: "query-without-question-mark", value: text, says: "without the question mark", isUsual: true },
    { what: "query-left-out", value: "", says: "with no query", isUsual: true },
    { what: "query-left-out", value: "?", says: "with an empty query", isUsual: true },
    {
      what: "query-reordered",
      value: `?${sorted.join("&")}`,
      says: "its parameters in another order",
      isUsual: true,
    },
    { what: "query-reordered", value: `?${reversed.join("&")}`, says: "its parameters in another order" },
    { what: "query-decoded", value: decoded(query), says: "decoded", isUsual: true },
    {
      what: "query-decoded",
      value: decoded(query.replaceAll("+", " ")),
      says: "decoded",
    },
    { what: "query-encoded", value: query.replaceAll("%20", "+"), says: "with + in place of %20" },
    { what: "query-encoded", value: query.replaceAll("+", "%20"), says: "with %20 in place of +" },
    { what: "query-encoded", value: hexCase(query, "lower"), says: "its percent-encoding in lower case" },
    { what: "query-encoded", value: hexCase(query, "upper"), says: "its percent-encoding in upper case" },
    { what: "query-encoded", value: `?${encoded(text)}`, says: "encoded once more" },
  ];
}

/** What signers put behind `@target-uri` in place of the URL that is asked for. */
export function targetUriVariants(uri: string, context: MismatchContext): readonly ValueVariant[] {
  const [bare = ""] = uri.split("?");
  const other = uri.startsWith("https:") ? uri.replace("https:", "http:") : uri.replace("http:", "https:");
  const hosts = ["host", "x-forwarded-host"].flatMap((name) => fieldLines(context, name));
  return [
    { what: "target-uri-without-query", value: bare, says: "without the query", isUsual: true },
    { what: "target-uri-other-scheme", value: other, says: "with the other scheme", isUsual: true },
    { what: "target-uri-path-alone", value: context.target, says: "the path and query alone", isUsual: true },
    {
      what: "target-uri-trailing-slash",
      value: uri.endsWith("/") ? uri.slice(0, -1) : `${uri}/`,
      says: uri.endsWith("/") ? "without the slash at its end" : "with a slash at its end",
      isUsual: true,
    },
    { what: "target-uri-decoded", value: decoded(uri), says: "decoded" },
    ...["443", "80", "8080", "8443", "3000"].map((port) => ({
      what: "target-uri-with-port",
      value: uri.replace(/^([a-z]+:\/\/[^/:]+)(?::\d+)?/, `$1:${port}`),
      says: "with another port",
    })),
    {
      what: "target-uri-with-port",
      value: uri.replace(/^([a-z]+:\/\/[^/:]+):\d+/, "$1"),
      says: "without the port",
    },
    ...hosts.map((host) => ({
      what: "target-uri-other-authority",
      value: uri.replace(/^([a-z]+:\/\/)[^/]+/, (_, scheme: string) => scheme + host.trim()),
      says: "with another server",
    })),
  ];
}

function queryOf(target: string): string {
  const start = target.indexOf("?");
  return start === -1 ? "" : target.slice(start);
}

function encodedPath(path: string): string {
  try {
    return encodeURI(path);
  } catch {
    return path;
  }
}

function hexCase(text: string, letters: "lower" | "upper"): string {
  return text.replaceAll(/%[0-9a-f]{2}/gi, (byte) =>
    letters === "lower" ? byte.toLowerCase() : byte.toUpperCase(),
  );
}
