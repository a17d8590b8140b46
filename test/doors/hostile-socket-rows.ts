// Requests as bytes on a connection: what is wrong with them stands in their lines and their framing, where no client of Node sends it.
import { samplePath } from "../support/independent-signer.ts";
import { signOrder, type OrderPlan } from "./policy-scene.ts";

/** How a request is answered: the statuses of all answers on the connection, and what the checks refused. */
export interface Outcome {
  readonly statuses: readonly number[];
  readonly codes: readonly string[];
}

export interface SocketRow {
  readonly title: string;
  readonly bytes: () => Buffer;
  /** Versions of Node differ in what their parser refuses by itself: one of these. A 200 alone means that the handler ran. */
  readonly outcomes: readonly Outcome[];
  /** The client leaves behind its last byte. */
  readonly leaves?: boolean;
}

/** An order as bytes; every part can be another one. */
export interface RawOrder {
  readonly plan?: OrderPlan;
  readonly version?: string;
  readonly start?: string;
  readonly host?: readonly string[];
  /** In the place of Content-Length. */
  readonly framing?: readonly string[];
  /** Further lines of the head. */
  readonly lines?: readonly string[];
  /** In the place of the lines that were signed. */
  readonly change?: (lines: readonly string[]) => readonly string[];
  readonly body?: (body: string) => string;
  readonly keepsAlive?: boolean;
}

/** A character is a byte. */
export function rawOrder(order: RawOrder = {}): Buffer {
  const { plan, version = "HTTP/1.1", host = ["Host: a.example"], lines = [], change, keepsAlive } = order;
  const { method, path, headers, body } = signOrder(plan);
  const text = body.toString("latin1");
  const signed = headers.flatMap((name, index) =>
    index % 2 === 0 ? [`${name}: ${headers[index + 1] ?? ""}`] : [],
  );
  const head = [
    order.start ?? `${method} ${path} ${version}`,
    ...host,
    ...(keepsAlive ? [] : ["Connection: close"]),
    ...(order.framing ?? [`Content-Length: ${text.length}`]),
    ...(change?.(signed) ?? signed),
    ...lines,
  ];
  return Buffer.from([...head, "", order.body?.(text) ?? text].join("\r\n"), "latin1");
}

const server = (...statuses: readonly number[]): readonly Outcome[] =>
  statuses.map((status) => ({ statuses: [status], codes: [] }));
const check = (code: string, status = 401): readonly Outcome[] => [{ statuses: [status], codes: [code] }];
const bad = server(400);
/** The server's parser fails behind the head, while the check is at work or has spoken. */
const torn = (code: string, status = 401): readonly Outcome[] => [
  ...check(code, status),
  { statuses: [400], codes: [] },
  { statuses: [400], codes: [code] },
  { statuses: [status, 400], codes: [code] },
];
const good = server(200);

const chunked = ["Transfer-Encoding: chunked"];
const inChunks = (body: string): string => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
const replaced =
  (name: string, change: (value: string) => string) =>
  (lines: readonly string[]): readonly string[] =>
    lines.map((line) =>
      line.startsWith(`${name}: `) ? `${name}: ${change(line.slice(name.length + 2))}` : line,
    );
const without =
  (...names: readonly string[]) =>
  (lines: readonly string[]): readonly string[] =>
    lines.filter((line) => !names.some((name) => line.startsWith(`${name}: `)));

type Case = readonly [title: string, order: RawOrder | (() => Buffer), outcomes: readonly Outcome[]];

const taken: readonly Case[] = [
  ["an order", {}, good],
  ["an order in chunks", { framing: chunked, body: inChunks }, good],
  [
    "chunks of one byte",
    { framing: chunked, body: (body) => `${body.replaceAll(/./g, "1\r\n$&\r\n")}0\r\n\r\n` },
    good,
  ],
  [
    "chunks with extensions",
    { framing: chunked, body: (body) => inChunks(body).replace("\r\n", ";a=1\r\n") },
    good,
  ],
  ["tabs and spaces around values", { change: replaced("X-Items", (value) => `\t ${value} \t`) }, good],
  ["HTTP/1.0 without Host", { version: "HTTP/1.0", host: [] }, good],
  ["fields that a proxy is to drop", { lines: ["Connection: signature, x-items"] }, good],
  ["an upgrade that nobody offers", { lines: ["Upgrade: websocket"] }, good],
  [
    "two orders in one piece",
    () => Buffer.concat([rawOrder({ keepsAlive: true }), rawOrder()]),
    [{ statuses: [200, 200], codes: [] }],
  ],
  [
    "an order whose body is asked for",
    { lines: ["Expect: 100-continue"] },
    [{ statuses: [100, 200], codes: [] }],
  ],
];

const lengths: readonly Case[] = [
  ["Content-Length and chunks", { framing: ["Content-Length: 11", ...chunked] }, bad],
  ["chunks and Content-Length", { framing: [...chunked, "Content-Length: 11"], body: inChunks }, bad],
  ["two lengths", { framing: ["Content-Length: 11", "Content-Length: 12"] }, bad],
  ["one length twice", { framing: ["Content-Length: 11", "Content-Length: 11"] }, bad],
  ...["+11", "-11", "0xb", "11, 11", "1e1", "11 11", "11;", "99999999999999999999", "eleven"].map(
    (length): Case => [`the length ${length}`, { framing: [`Content-Length: ${length}`] }, bad],
  ),
  ["no length of a body", { framing: [] }, torn("content-digest-mismatch")],
  ["a length less than the body", { framing: ["Content-Length: 10"] }, torn("content-digest-mismatch")],
  [
    "the codings chunked and identity",
    { framing: ["Transfer-Encoding: chunked, identity"], body: inChunks },
    torn("transfer-coding-unsupported", 501),
  ],
  [
    "the coding identity",
    { framing: ["Transfer-Encoding: identity"], body: inChunks },
    torn("transfer-coding-unsupported", 501),
  ],
  [
    "a coding that ends in chunked",
    { framing: ["Transfer-Encoding: xchunked"], body: inChunks },
    torn("transfer-coding-unsupported", 501),
  ],
  [
    "the coding chunked twice",
    { framing: [...chunked, ...chunked], body: inChunks },
    torn("transfer-coding-unsupported", 501),
  ],
  [
    "a vertical tab before the coding",
    { framing: ["Transfer-Encoding: \x0bchunked"], body: inChunks },
    torn("transfer-coding-unsupported", 501),
  ],
  ...["zz", "-b", "0xb", "ffffffffffffffffff", "b,b"].map((size): Case => [
    `the chunk size ${size}`,
    { framing: chunked, body: (body) => inChunks(body).replace(/^b/, size) },
    bad,
  ]),
  [
    "a chunk longer than its size",
    { framing: chunked, body: (body) => inChunks(body).replace(/^b/, "a") },
    bad,
  ],
  [
    "a chunk without its end",
    { framing: chunked, body: (body) => inChunks(body).replace("}\r\n", "}") },
    bad,
  ],
  [
    "a chunk extension of 20 kB",
    { framing: chunked, body: (body) => inChunks(body).replace("\r\n", `;a=${"x".repeat(20_000)}\r\n`) },
    server(413, 400),
  ],
  [
    "a body over the limit that does not come",
    { framing: ["Content-Length: 5000"] },
    check("body-too-large", 413),
  ],
  ["an expectation that nobody meets", { lines: ["Expect: the-moon"] }, server(417)],
];

const lines: readonly Case[] = [
  ["a folded line", { change: replaced("X-Items", (value) => value.replace(",", ",\r\n")) }, bad],
  [
    "a folded line of the signature",
    { change: replaced("Signature-Input", (value) => value.replace(" ", "\r\n ")) },
    bad,
  ],
  ["a space before the colon", { lines: ["X-More : 1"] }, bad],
  ["a space before the colon of a length", { framing: ["Content-Length : 11"] }, bad],
  ["a line without a colon", { lines: ["X-More"] }, bad],
  ["a line without a name", { lines: [": 1"] }, bad],
  ["NUL in a value", { change: replaced("X-Raw", (value) => `${value}\0`) }, bad],
  ["NUL in a name", { lines: ["X-\0: 1"] }, bad],
  [
    "a control character in a covered value",
    { change: replaced("X-Raw", (value) => `${value}\x01`) },
    [...bad, ...check("signature-mismatch")],
  ],
  ["a return within a line", { lines: ["X-More: a\rX-Raw: b"] }, bad],
  ["a byte that is no ASCII in a name", { lines: ["X-\u00e9: 1"] }, bad],
  [
    "a byte that is no ASCII in the parameters",
    { change: replaced("Signature-Input", (value) => `${value};a="\u00e9"`) },
    check("field-invalid"),
  ],
  [
    "a member over two lines",
    {
      change: (all) =>
        all.flatMap((line) =>
          line.startsWith("Signature-Input")
            ? line
                .split(/ (?="@path")/)
                .map((part, index) => (index === 0 ? part : `Signature-Input: ${part}`))
            : [line],
        ),
    },
    check("field-invalid"),
  ],
  ["a head over 16 kB", { lines: [`X-More: ${"x".repeat(17_000)}`] }, server(431)],
  ["a target over 16 kB", { plan: { path: `/${"x".repeat(17_000)}` } }, server(431, 414)],
  [
    "a thousand lines",
    { lines: Array.from({ length: 1_000 }, () => "X: 1") },
    [...check("header-lines-dropped", 431), ...server(431)],
  ],
  ["no Host", { host: [] }, bad],
  ["two Hosts", { host: ["Host: a.example", "Host: b.example"] }, [...bad, ...check("authority-conflict")]],
  [
    "one Host twice",
    { host: ["Host: a.example", "Host: a.example"] },
    [...bad, ...check("authority-conflict")],
  ],
];

const starts: readonly Case[] = [
  ["a method in lower case", { start: `post ${samplePath}?id=7 HTTP/1.1` }, bad],
  ["a method that is not known", { start: `PAY ${samplePath}?id=7 HTTP/1.1` }, bad],
  ["HTTP/1.2", { version: "HTTP/1.2" }, bad],
  ["HTTP/0.9", { start: `GET ${samplePath}` }, [...bad, ...check("covered-field-missing")]],
  [
    "the preface of HTTP/2",
    () => Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    [...bad, { statuses: [], codes: [] }],
  ],
  ["a ClientHello of TLS", () => Buffer.from("16030100010100000000", "hex"), bad],
  ["two spaces before the target", { start: `POST  ${samplePath}?id=7 HTTP/1.1` }, good],
  ["a space in the target", { start: `POST ${samplePath}?id=7 x HTTP/1.1` }, bad],
  [
    "a byte that is no ASCII in the target",
    { start: `POST ${samplePath}?id=7&\u00e9 HTTP/1.1` },
    [...bad, ...check("target-invalid")],
  ],
  ["NUL in the target", { start: `POST ${samplePath}?id=7\0 HTTP/1.1` }, bad],
  [
    "the absolute form",
    { start: `POST http://a.example${samplePath}?id=7 HTTP/1.1` },
    check("target-invalid"),
  ],
  [
    "the absolute form of another server",
    { start: `POST http://b.example${samplePath}?id=7 HTTP/1.1` },
    check("target-invalid"),
  ],
  [
    "the asterisk form",
    { start: "OPTIONS * HTTP/1.1", plan: { method: "OPTIONS" } },
    check("target-invalid"),
  ],
  [
    "the authority form",
    { start: "CONNECT a.example:443 HTTP/1.1", plan: { method: "CONNECT" } },
    [{ statuses: [], codes: [] }],
  ],
  ["a path without a slash", { start: "POST api/v1?id=7 HTTP/1.1" }, [...bad, ...check("target-invalid")]],
];

const covered = (identifier: string, value: string): OrderPlan => ({ further: [[identifier, value]] });
const withTrailers = (...trailers: readonly string[]) => ({
  framing: chunked,
  body: (body: string) => inChunks(body).replace(/\r\n$/, [...trailers, "", ""].join("\r\n")),
});
const trailers: readonly Case[] = [
  ["trailers that nothing covers", withTrailers("X-End: 1"), good],
  [
    "a covered trailer, which reaches no door",
    { plan: covered('"x-end";tr', "1"), ...withTrailers("X-End: 1"), lines: ["Trailer: X-End"] },
    check("component-parameter-unsupported"),
  ],
  [
    "a covered trailer of structure",
    { plan: covered('"x-items";tr;sf', "a=1"), ...withTrailers("X-Items: a=1") },
    check("component-parameter-unsupported"),
  ],
  [
    "a covered field that comes as a trailer",
    { plan: covered('"x-end"', "1"), ...withTrailers("X-End: 1") },
    check("covered-field-missing"),
  ],
  [
    "a signature that comes as a trailer",
    () => movedToTrailers("Signature-Input", "Signature"),
    check("signature-missing"),
  ],
  [
    "a digest that comes as a trailer",
    () => movedToTrailers("Content-Digest"),
    check("covered-field-missing"),
  ],
  ["a second digest as a trailer", withTrailers("Content-Digest: sha-256=:AAAA:"), good],
];

const unsigned = "DELETE /api HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
const behind: readonly Case[] = [
  // The answers keep the order of the requests, but the two are verified side by side.
  [
    "an order twice in one piece",
    () => replayed(),
    [
      { statuses: [200, 401], codes: ["nonce-replayed"] },
      { statuses: [401, 200], codes: ["nonce-replayed"] },
    ],
  ],
  [
    "a request that is not signed behind an order",
    () =>
      Buffer.concat([
        rawOrder({ keepsAlive: true }),
        Buffer.from("DELETE /api HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n"),
      ]),
    [{ statuses: [200, 401], codes: ["signature-missing"] }],
  ],
  [
    "a request within the length of a body",
    {
      framing: [`Content-Length: ${11 + unsigned.length}`],
      body: (body) => body + unsigned,
    },
    check("content-digest-mismatch"),
  ],
  [
    "an order behind a refused one",
    () => Buffer.concat([rawOrder({ keepsAlive: true, plan: { keyid: "other" } }), rawOrder()]),
    [{ statuses: [401, 200], codes: ["key-unknown"] }],
  ],
];

const cut: readonly SocketRow[] = [
  ["half a body", () => rawOrder({ framing: ["Content-Length: 22"] })],
  ["half a chunk", () => rawOrder({ framing: chunked, body: (body) => inChunks(body).slice(0, 8) })],
  [
    "a body without its last chunk",
    () => rawOrder({ framing: chunked, body: (body) => inChunks(body).slice(0, -5) }),
  ],
  ["half a head", () => rawOrder().subarray(0, 200)],
  ["a start line alone", () => Buffer.from("POST / HTTP/1.1\r\n")],
].map(([title, bytes]): SocketRow => ({
  title: `${String(title)}, and nobody behind it`,
  bytes: bytes as () => Buffer,
  outcomes: [
    { statuses: [400], codes: [] },
    { statuses: [], codes: [] },
  ],
  leaves: true,
}));

export const socketRows: readonly SocketRow[] = [
  ...[...taken, ...lengths, ...lines, ...starts, ...trailers, ...behind].map(
    ([title, order, outcomes]): SocketRow => ({
      title,
      bytes: typeof order === "function" ? order : () => rawOrder(order),
      outcomes,
    }),
  ),
  ...cut,
];

/** An order in chunks of which these lines stand behind the body. */
function movedToTrailers(...names: readonly string[]): Buffer {
  let moved: readonly string[] = [];
  const change = (all: readonly string[]): readonly string[] => {
    const left = without(...names)(all);
    moved = all.filter((line) => !left.includes(line));
    return left;
  };
  return rawOrder({
    framing: chunked,
    change,
    body: (body) => inChunks(body).replace(/\r\n$/, [...moved, "", ""].join("\r\n")),
  });
}

function replayed(): Buffer {
  const order = rawOrder({ keepsAlive: true });
  const last = Buffer.from(order.toString("latin1").replace("\r\n", "\r\nConnection: close\r\n"), "latin1");
  return Buffer.concat([order, last]);
}
