// Where a body ends, and what stands behind it: lengths, chunks, trailers, further requests, and connections that are cut.
import type { OrderPlan } from "./policy-scene.ts";
import {
  bad,
  check,
  chunked,
  good,
  inChunks,
  rawOrder,
  server,
  socketRow,
  torn,
  without,
  type Case,
  type SocketRow,
} from "./raw-order.ts";

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

const covered = (identifier: string, value: string): OrderPlan => ({ further: [[identifier, value]] });
const withTrailers = (...trailers: readonly string[]) => ({
  framing: chunked,
  body: (body: string) => inChunks(body).replace(/\r\n$/, [...trailers, "", ""].join("\r\n")),
});
const trailers: readonly Case[] = [
  ["trailers that nothing covers", withTrailers("X-End: 1"), good],
  [
    "a covered trailer, which reaches no adapter",
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

export const framingRows: readonly SocketRow[] = [
  ...[...lengths, ...trailers, ...behind].map((row) => socketRow(row)),
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
