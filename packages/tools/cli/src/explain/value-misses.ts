import { hash } from "node:crypto";
import { fieldLines } from "@countersign/core/internal";
import { bodyVariants } from "./body-variants.ts";
import type { BaseLine, Draft, MismatchContext } from "./draft.ts";
import { quoted } from "./explanation.ts";
import { missesOf, type NearMiss, type Row } from "./near-miss.ts";
import { pathVariants, queryVariants, targetUriVariants, usualPorts, type Texts } from "./target-variants.ts";
import { isCredential } from "./visible-base.ts";

export function valueMisses(context: MismatchContext): readonly NearMiss<Draft>[] {
  return context.right.lines.flatMap((line, index) =>
    missesOf(variantsOf(line, context), {
      part: `value ${index}`,
      says: (how, text) => sentenceOf(line, how, text),
      // By its identifier: another near miss may have changed the order.
      put: (draft, value) => ({
        ...draft,
        lines: draft.lines.map((each) => (each.identifier === line.identifier ? { ...each, value } : each)),
      }),
    }),
  );
}

const prefixHint = " Where a proxy takes this prefix off, set pathPrefix instead.";

function sentenceOf({ identifier, value }: BaseLine, how: string, text: string): string {
  if (isCredential(identifier)) {
    return `Sign ${identifier} with the value that is sent: the signature fits with it ${how}.`;
  }
  const hint = how === "with a prefix" || how === "the path that a proxy has received" ? prefixHint : "";
  return `Sign ${identifier} as ${quoted(value)}: the signature fits with ${quoted(text)}, ${how}.${hint}`;
}

const byComponent: Readonly<Record<string, (value: string, context: MismatchContext) => Texts>> = {
  "@method": methodVariants,
  "@path": pathVariants,
  "@query": queryVariants,
  "@target-uri": targetUriVariants,
  "@request-target": requestTargetVariants,
  "@authority": authorityVariants,
  "@scheme": schemeVariants,
  "content-type": contentTypeVariants,
  "content-digest": contentDigestVariants,
};

function variantsOf({ identifier, value }: BaseLine, context: MismatchContext): Texts {
  const name = /^"([^"]*)"/.exec(identifier)?.[1] ?? "";
  const variants = Object.hasOwn(byComponent, name) ? byComponent[name] : undefined;
  const rows = variants?.(value, context) ?? fieldVariants(name, value, context);
  return rows.map(([what, how, texts, isUsual]) => {
    return [what, how, texts.filter((text) => text !== value), isUsual];
  });
}

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

function methodVariants(value: string): Texts {
  return [
    ["method-lower-case", "in lower case", [value.toLowerCase()], "usual"],
    ["method-upper-case", "in upper case", [value.toUpperCase()]],
    ["method-other", "another method", methods],
  ];
}

function requestTargetVariants(value: string, { method }: MismatchContext): Texts {
  const what = "request-target-with-method";
  const asOlder = "with the method before it, as older drafts have it";
  return [
    [what, asOlder, [`${method.toLowerCase()} ${value}`], "usual"],
    [what, "with the method before it", [`${method} ${value}`]],
    ["request-target-without-query", "without the query", [value.split("?")[0] ?? ""], "usual"],
  ];
}

function authorityVariants(value: string, context: MismatchContext): Texts {
  const host = value.replace(/:\d+$/, "");
  return [
    ...["host", "x-forwarded-host", ":authority", "x-original-host"].map((name): Row<string> => {
      const received = fieldLines(context, name).map((line) => line.trim());
      return ["authority-other-field", `the value of ${name}`, received, "usual"];
    }),
    ["authority-without-port", "without the port", [host], "usual"],
    ["authority-with-port", "with a port", usualPorts.map((port) => `${host}:${port}`)],
  ];
}

function schemeVariants(value: string): Texts {
  const other = value === "https" ? "http" : "https";
  return [["scheme-other", "the scheme of the other side of a proxy", [other], "usual"]];
}

const usualCharsets = ["; charset=utf-8", ";charset=utf-8", "; charset=UTF-8"];
const otherCharsets = [";charset=UTF-8", '; charset="utf-8"', "; charset=utf8"];
const otherTypes = ["application/json", "text/plain", "text/plain;charset=UTF-8"];

function contentTypeVariants(value: string): Texts {
  const [bare = ""] = value.split(";");
  const type = bare.trim();
  const [what, how] =
    type === value
      ? ["content-type-with-charset", "with a charset that is not sent"]
      : ["content-type-charset-spelling", "with the charset spelled otherwise"];
  return [
    ["content-type-without-parameters", "without the parameters that are sent", [type], "usual"],
    [what, how, usualCharsets.map((charset) => type + charset), "usual"],
    [what, how, otherCharsets.map((charset) => type + charset)],
    ["content-type-other", "another media type", [...otherTypes, "application/x-www-form-urlencoded"]],
  ];
}

type Digest = "sha256" | "sha512";

function fieldOf(algorithm: Digest, bytes: Uint8Array): string {
  return `${algorithm.replace("sha", "sha-")}=:${hash(algorithm, bytes, "base64")}:`;
}

function contentDigestVariants(value: string, { body }: MismatchContext): Texts {
  // The digest as sent, if the body is unknown.
  const bare = /:([^:]*):/.exec(body === undefined ? value : fieldOf("sha256", body))?.[1] ?? "";
  const digest = Buffer.from(bare, "base64");
  const hex = digest.toString("hex");
  const what = "content-digest-form";
  return [
    ...(body === undefined ? [] : digestRows(what, "the same body", body)),
    ...bodyVariants(body).flatMap(({ says, bytes }, index) =>
      digestRows("content-digest-of-other-body", says, bytes(), index === 0 ? "usual" : undefined),
    ),
    [what, "the base64 text alone", [bare]],
    [what, "the digest in hex", [hex, `sha-256=:${hex}:`, `sha-256=${hex}`]],
    [what, "without the colons", [`sha-256=${bare}`, value.replaceAll(":", "")]],
    [what, "with another name", [`SHA-256=${bare}`, `SHA-256=:${bare}:`, `sha256=:${bare}:`]],
  ];
}

function digestRows(what: string, of: string, bytes: Uint8Array, isUsual?: "usual"): Texts {
  return [
    [what, `the digest of ${of}`, [fieldOf("sha256", bytes)], isUsual],
    [what, `the SHA-512 digest of ${of}`, [fieldOf("sha512", bytes)]],
  ];
}

function fieldVariants(name: string, value: string, context: MismatchContext): Texts {
  const lines = fieldLines(context, name).map((line) => line.trim());
  const joined: Texts = [
    ["field-first-line", "its first line alone", lines.slice(0, 1), "usual"],
    ["field-last-line", "its last line alone", lines.slice(-1), "usual"],
    ["field-joined-otherwise", "the lines joined without a blank", [lines.join(",")]],
  ];
  return [
    ...(lines.length < 2 ? [] : joined),
    ["field-empty", "with no value", [""], "usual"],
    ["field-lower-case", "in lower case", [value.toLowerCase()]],
    ["field-upper-case", "in upper case", [value.toUpperCase()]],
    ["field-quoted", "in quotes", [`"${value}"`]],
  ];
}
