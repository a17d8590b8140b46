// Components with parameters (RFC 9421 sections 2.1 and 2.2.8) that no verifier may take, or that it has to.
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

/** Where nobody tells the door the lines. */
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
  ["a query parameter without a value", query("id", "")],
  ["a query parameter whose value is a question mark", query("id=?", "%3F")],
  [
    "a query parameter that would begin a line of the base",
    query("id=%0A%22@path%22:+/", "%0A%22%40path%22%3A%20%2F"),
  ],
  ["a query parameter that ends in NUL", query("id=7%00", "7%00")],
  ["names of query parameters in escapes", query("%69%64=%37")],
  ["empty pairs in the query", query("&&id=7&")],
  ["a dictionary over two lines", withItems("a=1", "b=(2 3);x")],
  [
    "a dictionary with a key twice, of which the last counts",
    withItemsAs("a=2, b=(2 3);x", "(2 3);x", "a=2, b=(2 3);x"),
  ],
  ["sixty-four members", withItemsAs(`b=1, ${many(63)}`, "1", `b=1, ${many(63)}`)],
  ["a tab between members", withItems("a=1,\tb=(2 3);x")],
  ["a byte that is no ASCII, wrapped", covering('"x-more";bs', ":gA==:", ["X-More", "\u0080"])],
  ["an empty line, wrapped", covering('"x-more";bs', "::", ["X-More", ""])],
  ["the whole query beside its parameter", () => ({ further: [['"@query"', "?id=7"]] })],
  ["parameters of a component in another order", covering('"x-items";key="a";sf', "1")],
];

const refusedQueries: readonly Refused[] = [
  ["no query", "covered-field-missing", query("", "7")],
  ["another query parameter", "covered-field-missing", query("iD=7")],
  ["a query parameter twice", "covered-field-repeated", query("id=7&id=7")],
  ["a query parameter twice, once in escapes", "covered-field-repeated", query("id=7&%69d=8")],
  ["a query parameter twice, once without a value", "covered-field-repeated", query("id&id=7")],
  ["a query parameter behind a semicolon", "covered-field-missing", query("a=1;id=7")],
  ["another value of a query parameter", "signature-mismatch", query("id=8", "7")],
  ["a value that ends in a space", "signature-mismatch", query("id=7+", "7")],
  ["a percent sign alone in the query", "covered-field-invalid", query("id=7&a=%")],
  ["an escape without digits in the query", "covered-field-invalid", query("id=%zz", "%25zz")],
  ["bytes that are no UTF-8 in the query", "covered-field-invalid", query("id=%ff", "%EF%BF%BD")],
  ["half a surrogate pair in the query", "covered-field-invalid", query("id=%ed%a0%80", "%EF%BF%BD")],
  ["an overlong form in the query", "covered-field-invalid", query("id=%c0%b7", "7")],
  ["@query-param without a name", "component-unsupported", covering('"@query-param"', "7")],
  [
    "@query-param with a name that is a token",
    "component-parameter-unsupported",
    covering('"@query-param";name=id', "7"),
  ],
  ["@query-param with bytes", "component-parameter-unsupported", covering(`${id};bs`, "7")],
  [
    "@query-param by the name in lower-case escapes",
    "covered-field-missing",
    covering('"@query-param";name="%c3%a4"', ""),
  ],
  ["a query parameter covered twice", "component-duplicate", covering(id, "7")],
];

const refusedFields: readonly Refused[] = [
  ["a changed member", "signature-mismatch", withItems("a=2, b=(2 3);x")],
  ["a member more", "signature-mismatch", withItems("a=1, b=(2 3);x, c")],
  ["members in another order", "signature-mismatch", withItems("b=(2 3);x, a=1")],
  ["a field that is gone", "covered-field-missing", withItems()],
  ["an empty dictionary", "covered-field-invalid", withItemsAs("", "1", "")],
  ["a member that is gone", "covered-field-missing", withItemsAs("a=1", "1", "a=1")],
  ["a key twice", "covered-field-invalid", withItemsAs("a=1, b=2", "2", "a=1, b=1, b=2")],
  ["a key twice over two lines", "covered-field-invalid", withItemsAs("a=1, b=2", "2", "a=1, b=1", "b=2")],
  ["a comma at the end of a dictionary", "covered-field-invalid", withItems("a=1, b=(2 3);x,")],
  ["a key in upper case", "covered-field-invalid", withItems("a=1, b=(2 3);x, C")],
  ["an inner list without end", "covered-field-invalid", withItems("a=1, b=(2 3")],
  ["a string without end", "covered-field-invalid", withItems('a=1, b=(2 3);x, c="')],
  ["a date in a dictionary", "covered-field-invalid", withItems("a=1, b=(2 3);x, c=@1")],
  ["bytes in another spelling", "covered-field-invalid", withItems("a=1, b=(2 3);x, c=:AB==:")],
  ["an integer of sixteen digits", "covered-field-invalid", withItems(`a=1, b=(2 3);x, c=${"1".repeat(16)}`)],
  ["a decimal of four places", "covered-field-invalid", withItems("a=1, b=(2 3);x, c=1.0001")],
  [
    "a byte that is no ASCII in a dictionary",
    "covered-field-invalid",
    withItems('a=1, b=(2 3);x, c="\u00e9"'),
  ],
  ["sixty-five members", "field-limit", withItemsAs(`b=1, ${many(64)}`, "1", `b=1, ${many(64)}`)],
  ["a dictionary over 4 KiB", "field-limit", withItems(`a=1, b=(2 3);x, c="${"x".repeat(4096)}"`)],
  ["two thousand parentheses", "covered-field-invalid", withItems(`a=1, b=${"(".repeat(2000)}`)],
  ["nine parameters of a member", "field-limit", withItems("a=1;a;b;c;d;e;f;g;h;i, b=(2 3);x")],
  ["one line in the place of two, wrapped", "signature-mismatch", withRaw(":YQ==:, :Yg==:", "a, b")],
  ["two lines in the place of one, wrapped", "signature-mismatch", withRaw(":YSwg:", "a", "")],
  ["lines in another order, wrapped", "signature-mismatch", withRaw(":YQ==:, :Yg==:", "b", "a")],
  ["another byte, wrapped", "signature-mismatch", withRaw(":YSwgY2Fm6Q==:", "a, caf\u00e8")],
  [
    "a byte that is no ASCII in a plain field",
    "covered-field-invalid",
    covering('"x-more"', "caf\u00e9", ["X-More", "caf\u00e9"]),
  ],
  ["a field of an unknown type, strictly", "component-parameter-unsupported", covering('"x-raw";sf', "a")],
  [
    "a member of a field that is no dictionary",
    "component-parameter-unsupported",
    covering('"sec-ch-ua";key="a"', "1", ["Sec-CH-UA", '"a"']),
  ],
  [
    "the prototype of the types",
    "component-parameter-unsupported",
    covering('"constructor";sf', "a", ["Constructor", "a"]),
  ],
];

const refusedParameters: readonly Refused[] = [
  ["bytes and structure", "component-parameter-unsupported", covering('"x-items";bs;sf', "1")],
  ["bytes and a key", "component-parameter-unsupported", covering('"x-items";bs;key="a"', "1")],
  ["sf that is false", "component-parameter-unsupported", covering('"x-items";sf=?0', "1")],
  ["bs that is a number", "component-parameter-unsupported", covering('"x-raw";bs=1', "1")],
  ["a key that is a token", "component-parameter-unsupported", covering('"x-items";key=a', "1")],
  ["an unknown parameter of a component", "component-parameter-unsupported", covering('"x-raw";x', "1")],
  ["a parameter of a component in upper case", "field-invalid", covering('"x-raw";BS', "1")],
  ["a parameter of a component twice", "field-invalid", covering('"x-raw";bs;bs', "1")],
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
  ["a wrapped field covered twice", "component-duplicate", covering(raw, ":YSwgY2Fm6Q==:")],
  ["a trailer", "component-parameter-unsupported", covering('"x-end";tr', "1", ["X-End", "1"])],
  ["a trailer of structure", "component-parameter-unsupported", covering('"x-items";tr;sf', "a=1")],
  [
    "a component of the request that a request answers",
    "component-parameter-unsupported",
    covering('"@method";req', "POST"),
  ],
  [
    "a digest of the request that a request answers",
    "component-parameter-unsupported",
    () => ({ further: [['"content-digest";req', "sha-256=:AAAA:"]] }),
  ],
  ["@status of a request", "component-unsupported", covering('"@status"', "200")],
  [
    "@status of the request that a request answers",
    "component-parameter-unsupported",
    covering('"@status";req', "200"),
  ],
  [
    "a derived component with structure",
    "component-parameter-unsupported",
    covering('"@path";sf', samplePath),
  ],
  ["a header of HTTP/2 as a component", "component-name-invalid", covering('":path"', samplePath)],
  [
    "a required component without its parameter",
    "component-required",
    () => ({ instead: { [raw]: undefined }, further: [['"x-raw"', "a"]] }),
  ],
  [
    "a required member of another name",
    "component-required",
    () => ({ instead: { [itemsB]: undefined }, further: [['"x-items";key="a"', "1"]] }),
  ],
  [
    "a required query parameter of another name",
    "component-required",
    () => ({ instead: { [id]: undefined }, further: [['"@query-param";name="ID"', "7"]] }),
  ],
  [
    "no component with a parameter",
    "component-required",
    () => ({ instead: { [id]: undefined, [items]: undefined, [itemsB]: undefined, [raw]: undefined } }),
  ],
];

export const componentRows: readonly Row[] = [
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
