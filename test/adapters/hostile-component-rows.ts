// Components with parameters (RFC 9421 sections 2.1 and 2.2.8) that no verifier may take, or that it has to.
import type { HttpSignatureVerifyOptions } from "@countersign/http-signature-verify";
import { samplePath } from "../support/signers/independent-signer.ts";
import {
  accepted,
  orderLines,
  policyScene,
  signOrder,
  unauthorized,
  type OrderPlan,
} from "./policy-scene.ts";
import type { Row } from "./row.ts";

type Case = readonly [title: string, plan: () => OrderPlan];
type Refused = readonly [title: string, code: string, plan: () => OrderPlan];

const scene = policyScene();
const id = '"@query-param";name="id"';
const items = '"x-items";sf';
const itemsB = '"x-items";key="b"';
const raw = '"x-raw";bs';
const [itemsLine, rawLine] = [orderLines.slice(0, 2), orderLines.slice(2)];

const merged: Row["except"] = {
  fetch: {
    why: "Headers has merged the lines of the field",
    answer: unauthorized,
    code: "signature-mismatch",
  },
};

const query =
  (text: string, value?: string): (() => OrderPlan) =>
  () => ({ path: `${samplePath}?${text}`, ...(value !== undefined && { instead: { [id]: value } }) });
const withItems =
  (...lines: string[]): (() => OrderPlan) =>
  () => ({ lines: [...lines.flatMap((line) => ["X-Items", line]), ...rawLine] });
const withRaw =
  (signed: string, ...lines: string[]): (() => OrderPlan) =>
  () => ({ lines: [...itemsLine, ...lines.flatMap((line) => ["X-Raw", line])], instead: { [raw]: signed } });
const withItemsAs =
  (strict: string, b: string, ...lines: string[]): (() => OrderPlan) =>
  () => ({ ...withItems(...lines)(), instead: { [items]: strict, [itemsB]: b } });
const covering =
  (identifier: string, value = "", lines: readonly string[] = []): (() => OrderPlan) =>
  () => ({ further: [[identifier, value]], lines: [...orderLines, ...lines] });
const many = (count: number): string => Array.from({ length: count }, (_, index) => `k${index}=1`).join(", ");

const taken: readonly Case[] = [
  ["an order", () => ({})],
  ["a query parameter among five hundred", query(`${"a=1&".repeat(500)}id=7`)],
  [
    "a query parameter that would begin a line of the base",
    query("id=%0A%22@path%22:+/", "%0A%22%40path%22%3A%20%2F"),
  ],
  ["names of query parameters in escapes", query("%69%64=%37")],
  ["a dictionary over two lines", withItems("a=1", "b=(2 3);x")],
  ["a byte that is no ASCII, wrapped", covering('"x-more";bs', ":gA==:", ["X-More", "\u0080"])],
  ["an empty line, wrapped", covering('"x-more";bs', "::", ["X-More", ""])],
  ["the whole query beside its parameter", () => ({ further: [['"@query"', "?id=7"]] })],
  ["parameters of a component in another order", covering('"x-items";key="a";sf', "1")],
];

const refusedQueries: readonly Refused[] = [
  ["no query", "covered-field-missing", query("", "7")],
  ["a query parameter twice, once in escapes", "covered-field-repeated", query("id=7&%69d=8")],
  ["another value of a query parameter", "signature-mismatch", query("id=8", "7")],
  ["bytes that are no UTF-8 in the query", "covered-field-invalid", query("id=%ff", "%EF%BF%BD")],
];

const refusedFields: readonly Refused[] = [
  ["a changed member", "signature-mismatch", withItems("a=2, b=(2 3);x")],
  ["a field that is gone", "covered-field-missing", withItems()],
  ["a key twice over two lines", "covered-field-invalid", withItemsAs("a=1, b=2", "2", "a=1, b=1", "b=2")],
  ["an inner list without end", "covered-field-invalid", withItems("a=1, b=(2 3")],
  ["sixty-five members", "field-limit", withItemsAs(`b=1, ${many(64)}`, "1", `b=1, ${many(64)}`)],
  ["one line in the place of two, wrapped", "signature-mismatch", withRaw(":YQ==:, :Yg==:", "a, b")],
  ["lines in another order, wrapped", "signature-mismatch", withRaw(":YQ==:, :Yg==:", "b", "a")],
  [
    "a byte that is no ASCII in a plain field",
    "covered-field-invalid",
    covering('"x-more"', "caf\u00e9", ["X-More", "caf\u00e9"]),
  ],
  ["a field of an unknown type, strictly", "component-parameter-unsupported", covering('"x-raw";sf', "a")],
  [
    "the prototype of the types",
    "component-parameter-unsupported",
    covering('"constructor";sf', "a", ["Constructor", "a"]),
  ],
];

const refusedParameters: readonly Refused[] = [
  ["bytes and structure", "component-parameter-unsupported", covering('"x-items";bs;sf', "1")],
  ["nine parameters of a component", "field-limit", covering('"x-raw";bs;a;b;c;d;e;f;g;h', "1")],
  [
    "a component twice by its parameters' order",
    "component-duplicate",
    () => ({
      further: [
        ['"x-items";sf;key="a"', "1"],
        ['"x-items";key="a";sf', "1"],
      ],
    }),
  ],
  ["a trailer", "component-parameter-unsupported", covering('"x-end";tr', "1", ["X-End", "1"])],
  [
    "a digest of the request that a request answers",
    "component-parameter-unsupported",
    () => ({ further: [['"content-digest";req', "sha-256=:AAAA:"]] }),
  ],
  ["@status of a request", "component-unsupported", covering('"@status"', "200")],
  [
    "a required member of another name",
    "component-required",
    () => ({ instead: { [itemsB]: undefined }, further: [['"x-items";key="a"', "1"]] }),
  ],
  [
    "no component with a parameter",
    "component-required",
    () => ({ instead: { [id]: undefined, [items]: undefined, [itemsB]: undefined, [raw]: undefined } }),
  ],
];

const origin = "https://pay.example";
const amount: readonly [string, string] = ['"@query-param";name="amount"', "8"];
const target = `${samplePath}?id=7`;
const targetUri: readonly [string, string] = ['"@target-uri"', origin + target];
const requestTarget: readonly [string, string] = ['"@request-target"', target];

// What a policy requires may be covered in more than one way.
const covered: readonly (readonly [string, Partial<HttpSignatureVerifyOptions>, OrderPlan])[] = [
  ["a query with its one parameter signed", {}, {}],
  ["a query with each parameter signed", {}, { path: `${samplePath}?amount=8&id=7`, further: [amount] }],
  ["a required query with each parameter signed", { requiredComponents: ["@query"] }, {}],
  [
    "a required parameter in a signed query",
    {},
    { instead: { [id]: undefined }, further: [['"@query"', "?id=7"]] },
  ],
  ["a required parameter in a signed target", {}, { instead: { [id]: undefined }, further: [requestTarget] }],
  [
    "a required query in a signed target URI",
    { requiredComponents: ["@query"], origin },
    { further: [targetUri] },
  ],
  [
    "a required path in a signed target URI",
    { origin },
    { instead: { '"@path"': undefined }, further: [targetUri] },
  ],
  ["a required path in a signed target", {}, { instead: { '"@path"': undefined }, further: [requestTarget] }],
  [
    "a required authority in a signed target URI",
    { requiredComponents: ["@authority"], origin },
    { further: [targetUri] },
  ],
];

export const componentRows: readonly Row[] = [
  ...covered.map(([title, change, plan]): Row => ({
    title,
    scene: policyScene({ allowUnsignedQuery: false, ...change }),
    request: () => signOrder(plan),
    answer: accepted,
  })),
  ...taken.map(([title, plan]): Row => ({
    title,
    scene,
    request: () => signOrder(plan()),
    answer: accepted,
  })),
  {
    title: "two lines with commas, wrapped",
    scene,
    request: () => signOrder(withRaw(":YSwgYg==:, :Yw==:", "a, b", "c")()),
    answer: accepted,
    except: merged,
  },
  ...[...refusedQueries, ...refusedFields, ...refusedParameters].map(([title, code, plan]): Row => ({
    title,
    scene,
    request: () => signOrder(plan()),
    answer: unauthorized,
    code,
  })),
];
