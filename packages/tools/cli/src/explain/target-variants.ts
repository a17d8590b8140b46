import { fieldLines } from "@countersign/core/internal";
import type { MismatchContext } from "./draft.ts";
import type { Row } from "./near-miss.ts";

/** Other texts for the value of a component. */
export type Texts = readonly Row<string>[];

export function pathVariants(path: string, context: MismatchContext): Texts {
  const whole = path + /(?:\?.*)?$/s.exec(context.target)?.[0];
  const authority = context.authority ?? "";
  const forwarded = fieldsOfProxies.flatMap((name) =>
    fieldLines(context, name).map((line) => line.trim().split("?")[0] ?? ""),
  );
  const prefixes = [...forwarded, ...context.pathPrefixes].map((prefix) => prefix.replace(/\/$/, "") + path);
  return [
    ["path-with-query", "with the query after it", [whole], "usual"],
    ["path-full-url", "the full URL", [path, whole].map((text) => `https://${authority}${text}`), "usual"],
    ["path-full-url", "the full URL", [path, whole].map((text) => `http://${authority}${text}`)],
    slashRow("path-trailing-slash", path),
    ["path-decoded", "decoded", [decoded(path)], "usual"],
    ["path-letter-case", "in another letter case", [path.toLowerCase(), path.toUpperCase()]],
    ["path-without-leading-slash", "without its first slash", [path.slice(1)]],
    ["path-with-prefix", "the path that a proxy has received", forwarded, "usual"],
    ["path-with-prefix", "with a prefix", prefixes, "usual"],
    ...shorterPaths(path),
  ];
}

const fieldsOfProxies = [
  "x-forwarded-prefix",
  "x-forwarded-path",
  "x-original-uri",
  "x-original-url",
  "x-envoy-original-path",
  "x-forwarded-uri",
];
const maxSegments = 10;

function shorterPaths(path: string): Texts {
  const segments = path.split("/");
  // Up to all of them: a proxy may have put the whole path before "/".
  const places = Array.from({ length: Math.min(segments.length, maxSegments) - 1 }, (_, index) => index + 2);
  return places.map((at) => {
    const end = `/${segments.slice(at).join("/")}`;
    return ["path-without-prefix", "without the prefix before it", [end], at === 2 ? "usual" : undefined];
  });
}

export function queryVariants(query: string): Texts {
  const text = query.slice(1);
  const sorted = text.split("&").slice(0, 100);
  sorted.sort((one, other) => (one < other ? -1 : 1));
  return [
    ["query-without-question-mark", "without the question mark", [text], "usual"],
    ["query-left-out", "with no query", ["", "?"], "usual"],
    ["query-reordered", "its parameters in another order", [`?${sorted.join("&")}`], "usual"],
    ["query-decoded", "decoded", [decoded(query), decoded(query.replaceAll("+", " "))], "usual"],
    ["query-encoded", "with + in place of %20", [query.replaceAll("%20", "+")]],
  ];
}

/** Usual ports of proxies and of servers behind them. */
export const usualPorts: readonly string[] = ["443", "80", "8080", "8443", "3000"];

export function targetUriVariants(uri: string, context: MismatchContext): Texts {
  const [bare = ""] = uri.split("?");
  const other = uri.replace(/^http(s?)/, (_, s: string) => (s === "" ? "https" : "http"));
  return [
    ["target-uri-without-query", "without the query", [bare], "usual"],
    ["target-uri-other-scheme", "with the other scheme", [other], "usual"],
    ["target-uri-path-alone", "the path and query alone", [context.target], "usual"],
    slashRow("target-uri-trailing-slash", uri),
  ];
}

function slashRow(what: string, text: string): Row<string> {
  return text.endsWith("/")
    ? [what, "without the slash at its end", [text.slice(0, -1)], "usual"]
    : [what, "with a slash at its end", [`${text}/`], "usual"];
}

/** URL-decodes a text; unchanged if it is malformed. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
