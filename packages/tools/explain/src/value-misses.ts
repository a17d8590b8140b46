import { hash } from "node:crypto";
import { fieldLines } from "@countersign/core";
import { bodyVariants } from "./body-variants.ts";
import type { BaseLine, Draft, NearMiss } from "./draft.ts";
import { isCredential, quoted } from "./explanation.ts";
import { miss, type MismatchContext } from "./near-miss.ts";
import { pathVariants, queryVariants, targetUriVariants } from "./target-variants.ts";
import { decoded, encoded, type ValueVariant } from "./value-variant.ts";

/** Near misses in the value of one component. */
export function valueMisses(context: MismatchContext): readonly NearMiss[] {
  return context.right.lines.flatMap((line, index) =>
    variantsOf(line, context)
      .filter(({ value }) => value !== line.value)
      .map((variant) =>
        miss(
          variant.what,
          `value ${index}`,
          sentenceOf(line, variant),
          (draft) => withValue(draft, line, variant.value),
          variant.isUsual,
        ),
      ),
  );
}

function sentenceOf(line: BaseLine, { value, says, hint }: ValueVariant): string {
  const advice = hint === undefined ? "" : ` ${hint}`;
  if (isCredential(line.identifier)) {
    return `Sign ${line.identifier} with the value that is sent: the signature fits with it ${says}.`;
  }
  return `Sign ${line.identifier} as ${quoted(line.value)}: the signature fits with ${quoted(value)}, ${says}.${advice}`;
}

// By its identifier: another near miss may have changed the order.
function withValue(draft: Draft, { identifier }: BaseLine, value: string): Draft {
  return {
    ...draft,
    lines: draft.lines.map((line) => (line.identifier === identifier ? { identifier, value } : line)),
  };
}

function variantsOf({ identifier, value }: BaseLine, context: MismatchContext): readonly ValueVariant[] {
  const name = /^"([^"]*)"/.exec(identifier)?.[1] ?? "";
  switch (name) {
    case "@method":
      return methodVariants(value);
    case "@path":
      return pathVariants(value, context);
    case "@query":
      return queryVariants(value);
    case "@target-uri":
      return targetUriVariants(value, context);
    case "@request-target":
      return requestTargetVariants(value, context);
    case "@authority":
      return authorityVariants(value, context);
    case "@scheme":
      return schemeVariants(value);
    case "content-type":
      return contentTypeVariants(value);
    case "content-digest":
      return contentDigestVariants(value, context);
    default:
      return fieldVariants(name, value, context);
  }
}

function methodVariants(value: string): readonly ValueVariant[] {
  const capital = value.slice(0, 1).toUpperCase() + value.slice(1).toLowerCase();
  return [
    { what: "method-lower-case", value: value.toLowerCase(), says: "in lower case", isUsual: true },
    { what: "method-capitalised", value: capital, says: "in another letter case" },
    { what: "method-upper-case", value: value.toUpperCase(), says: "in upper case" },
    ...["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"].map((other) => ({
      what: "method-other",
      value: other,
      says: "another method",
    })),
    { what: "method-empty", value: "", says: "with no method" },
  ];
}

function requestTargetVariants(value: string, { method }: MismatchContext): readonly ValueVariant[] {
  return [
    {
      what: "request-target-with-method",
      value: `${method.toLowerCase()} ${value}`,
      says: "with the method before it, as older drafts have it",
      isUsual: true,
    },
    {
      what: "request-target-with-method",
      value: `${method} ${value}`,
      says: "with the method before it",
    },
    {
      what: "request-target-without-query",
      value: value.split("?")[0] ?? "",
      says: "without the query",
      isUsual: true,
    },
  ];
}

function authorityVariants(value: string, context: MismatchContext): readonly ValueVariant[] {
  const host = value.replace(/:\d+$/, "");
  const ports = ["443", "80", "8080", "8443", "3000"];
  const received = ["host", "x-forwarded-host", ":authority", "x-original-host"].flatMap((name) =>
    fieldLines(context, name).map((line) => ({
      what: "authority-other-field",
      value: line.trim(),
      says: `the value of ${name}`,
      isUsual: true,
    })),
  );
  return [
    ...received,
    { what: "authority-without-port", value: host, says: "without the port", isUsual: true },
    ...ports.map((port) => ({
      what: "authority-with-port",
      value: `${host}:${port}`,
      says: "with a port",
    })),
    { what: "authority-upper-case", value: value.toUpperCase(), says: "in upper case" },
    ...["https", "http"].map((scheme) => ({
      what: "authority-with-scheme",
      value: `${scheme}://${value}`,
      says: "with the scheme before it",
    })),
    { what: "authority-other", value: "localhost", says: "the name of another server" },
    { what: "authority-other", value: "127.0.0.1", says: "the name of another server" },
    { what: "authority-other", value: "", says: "with no server" },
  ];
}

function schemeVariants(value: string): readonly ValueVariant[] {
  const other = value === "https" ? "http" : "https";
  return [
    {
      what: "scheme-other",
      value: other,
      says: "the scheme of the other side of a proxy",
      isUsual: true,
    },
    { what: "scheme-upper-case", value: value.toUpperCase(), says: "in upper case" },
    { what: "scheme-with-colon", value: `${value}:`, says: "with a colon behind it" },
    { what: "scheme-with-colon", value: `${value}://`, says: "with a colon and slashes behind it" },
  ];
}

const charsets = [
  "; charset=utf-8",
  ";charset=utf-8",
  "; charset=UTF-8",
  ";charset=UTF-8",
  '; charset="utf-8"',
  "; charset=utf8",
];

function contentTypeVariants(value: string): readonly ValueVariant[] {
  const [bare = ""] = value.split(";");
  const type = bare.trim();
  return [
    {
      what: "content-type-without-parameters",
      value: type,
      says: "without the parameters that are sent",
      isUsual: true,
    },
    ...charsets.map((charset, index) => ({
      what: type === value ? "content-type-with-charset" : "content-type-charset-spelling",
      value: type + charset,
      says: type === value ? "with a charset that is not sent" : "with the charset spelled otherwise",
      isUsual: index < 3,
    })),
    { what: "content-type-other", value: "application/json", says: "another media type" },
    { what: "content-type-other", value: "text/plain", says: "another media type" },
    { what: "content-type-other", value: "text/plain;charset=UTF-8", says: "another media type" },
    {
      what: "content-type-other",
      value: "application/x-www-form-urlencoded",
      says: "another media type",
    },
    { what: "content-type-letter-case", value: value.toLowerCase(), says: "in lower case" },
    { what: "content-type-empty", value: "", says: "with no value" },
  ];
}

function sha256(bytes: Uint8Array): string {
  return hash("sha256", bytes, "base64");
}

function contentDigestVariants(value: string, { body }: MismatchContext): readonly ValueVariant[] {
  // What is sent, where the body itself is not known.
  const bare = body === undefined ? (/:([^:]*):/.exec(value)?.[1] ?? "") : sha256(body);
  const hex = Buffer.from(bare, "base64").toString("hex");
  const written: readonly (readonly [text: string, says: string])[] = [
    [bare, "the base64 text alone"],
    [hex, "the digest in hex alone"],
    [`sha-256=${bare}`, "without the colons"],
    [`SHA-256=${bare}`, "in the form of the old field Digest"],
    [`SHA-256=:${bare}:`, "the name of the algorithm in upper case"],
    [`sha256=:${bare}:`, "the algorithm named sha256"],
    [`sha-256=:${hex}:`, "the digest in hex"],
    [`sha-256=${hex}`, "the digest in hex, without colons"],
    [`"${value}"`, "in quotes"],
    [value.replaceAll(":", ""), "without the colons"],
    [`sha-256=:${Buffer.from(bare, "base64").toString("base64url")}:`, "the digest in base64url"],
    [`sha-256=:${bare.replace(/=+$/, "")}:`, "without the padding"],
    ["", "with no value"],
  ];
  const digestsOf = (what: string, says: string, bytes: Uint8Array, isUsual: boolean): ValueVariant[] => [
    { what, value: `sha-256=:${sha256(bytes)}:`, says: `the digest of ${says}`, isUsual },
    { what, value: `sha-512=:${hash("sha512", bytes, "base64")}:`, says: `the SHA-512 digest of ${says}` },
  ];
  return [
    ...(body === undefined ? [] : digestsOf("content-digest-form", "the same body", body, false)),
    ...bodyVariants(body).flatMap(({ says, bytes }, index) =>
      digestsOf("content-digest-of-other-body", says, bytes, index === 0),
    ),
    ...written.map(([text, form]) => ({ what: "content-digest-form", value: text, says: form })),
  ];
}

function fieldVariants(name: string, value: string, context: MismatchContext): readonly ValueVariant[] {
  const lines = fieldLines(context, name).map((line) => line.trim());
  const joined: readonly ValueVariant[] =
    lines.length < 2
      ? []
      : [
          {
            what: "field-first-line",
            value: lines[0] ?? "",
            says: "its first line alone",
            isUsual: true,
          },
          { what: "field-last-line", value: lines.at(-1) ?? "", says: "its last line alone", isUsual: true },
          {
            what: "field-joined-otherwise",
            value: lines.join(","),
            says: "the lines joined without a blank",
          },
          { what: "field-joined-otherwise", value: lines.join("; "), says: "the lines joined by semicolons" },
        ];
  return [
    ...joined,
    { what: "field-empty", value: "", says: "with no value", isUsual: true },
    { what: "field-lower-case", value: value.toLowerCase(), says: "in lower case" },
    { what: "field-upper-case", value: value.toUpperCase(), says: "in upper case" },
    { what: "field-quoted", value: `"${value}"`, says: "in quotes" },
    { what: "field-unquoted", value: value.replace(/^"(.*)"$/, "$1"), says: "without its quotes" },
    { what: "field-white-space", value: ` ${value}`, says: "with a blank before it" },
    { what: "field-white-space", value: `${value} `, says: "with a blank behind it" },
    { what: "field-url-encoded", value: encoded(value), says: "in URL encoding" },
    { what: "field-url-decoded", value: decoded(value), says: "decoded from URL encoding" },
  ];
}
