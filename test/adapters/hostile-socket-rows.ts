// Requests as bytes on a connection: what is wrong with them stands in their lines and their framing, where no client of Node sends it.
import { samplePath } from "../support/signers/independent-signer.ts";
import { framingRows } from "./hostile-framing-rows.ts";
import {
  bad,
  check,
  chunked,
  good,
  inChunks,
  rawOrder,
  replaced,
  server,
  socketRow,
  type Case,
  type SocketRow,
} from "./raw-order.ts";

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
  ["two Hosts", { host: ["Host: a.example", "Host: b.example"] }, check("host-repeated", 400)],
  ["one Host twice", { host: ["Host: a.example", "Host: a.example"] }, check("host-repeated", 400)],
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

export const socketRows: readonly SocketRow[] = [
  ...[...taken, ...lines, ...starts].map((row) => socketRow(row)),
  ...framingRows,
];
