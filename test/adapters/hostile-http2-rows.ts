// Orders as HTTP/2 has them, by their fields: what is let in, and what is refused with which code.
import type { OutgoingHttpHeaders } from "node:http2";
import { samplePath } from "../support/signers/independent-signer.ts";
import { signOrder, type OrderPlan } from "./policy-scene.ts";

export type Lines = Readonly<Record<string, string | readonly string[] | undefined>>;

/** The fields of an order; `lines` replaces some, and undefined takes one out. */
export function fieldsOf(plan: OrderPlan, lines: Lines): OutgoingHttpHeaders {
  const { method, path, headers } = signOrder(plan);
  const fields: Record<string, string> = {};
  for (let index = 0; index < headers.length; index += 2) {
    fields[(headers[index] ?? "").toLowerCase()] = headers[index + 1] ?? "";
  }
  const all = { ":method": method, ":path": path, ":authority": "pay.example", ...fields, ...lines };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

export const body: Buffer = signOrder().body;

// Each with its lines: jest would take an argument that is not there for its own.
export const letInRows: readonly (readonly [title: string, OrderPlan, Lines])[] = (
  [
    ["an order", {}],
    ["an order with its length", {}, { "content-length": String(body.length) }],
    ["an order that says Host too", {}, { host: "PAY.example" }],
    ["@authority by :authority", { further: [['"@authority"', "pay.example"]] }],
    ["@target-uri", { further: [['"@target-uri"', `http://pay.example${samplePath}?id=7`]] }],
  ] satisfies readonly (readonly [string, OrderPlan, Lines?])[]
).map(([title, plan, lines = {}]: readonly [string, OrderPlan, Lines?]) => [title, plan, lines] as const);

export const refusedRows: readonly (readonly [title: string, code: string, OrderPlan, Lines])[] = (
  [
    ["no signature", "signature-missing", {}, { signature: undefined }],
    ["a signature in two parts", "field-invalid", {}, { signature: ["sig1=:AAAA:", "sig1=:AAAA:"] }],
    ["a query parameter twice", "covered-field-repeated", {}, { ":path": `${samplePath}?id=7&%69d=7` }],
    ["dot segments", "target-invalid", {}, { ":path": `/x/..${samplePath}?id=7` }],
    ["two slashes at the start", "target-invalid", {}, { ":path": `//a.example${samplePath}?id=7` }],

    ["the asterisk form", "target-invalid", { method: "OPTIONS" }, { ":path": "*" }],
    ["another method", "signature-mismatch", {}, { ":method": "PUT" }],
    ["another server in Host", "authority-conflict", {}, { host: "other.example" }],
    [
      "a signature for another server",
      "signature-mismatch",
      { further: [['"@authority"', "other.example"]] },
    ],

    ["a covered :authority", "component-name-invalid", { further: [['":authority"', "pay.example"]] }],

    ["another body", "content-digest-mismatch", { body: '{"order":8}' }],
  ] satisfies readonly (readonly [string, string, OrderPlan, Lines?])[]
).map(
  ([title, code, plan, lines = {}]: readonly [string, string, OrderPlan, Lines?]) =>
    [title, code, plan, lines] as const,
);
