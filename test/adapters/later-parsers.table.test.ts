// What follows a check that has captured the body: req.body without a parser, and every usual parser, on both versions of Express.
import { createHmac } from "node:crypto";
import type { Server } from "node:http";
import { Writable } from "node:stream";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, test } from "@jest/globals";
import { contentDigest } from "@countersign/content-digest";
import { isGuardError } from "@countersign/core";
import { guardErrors, type Middleware } from "@countersign/express";
import { httpSignatureVerify, memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { captureRawBody, numberTextAt, rawBody } from "@countersign/raw-body";
import { webhookHmac } from "@countersign/webhook-hmac";
import express5, { type RequestHandler } from "express";
import express4 from "express4";
import multer from "multer";
import type { ExpressFactory } from "../support/runs/express-versions.ts";
import { isWhole } from "../support/runs/share.ts";
import { close, listen, send, type WireAnswer } from "../support/servers/http-client.ts";
import { samplePath, signRequest } from "../support/signers/independent-signer.ts";
import { servicePublicPem } from "../support/signers/test-keys.ts";

const running: Server[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map(close));
});

const secret = "test-secret-test-secret-test-secret";

interface Check {
  readonly name: string;
  readonly mount: () => Middleware;
}

const checks: readonly Check[] = [
  { name: "rawBody", mount: () => rawBody() },
  { name: "contentDigest", mount: () => contentDigest() },
  { name: "webhookHmac", mount: () => webhookHmac({ scheme: "github", secret }) },
  {
    name: "httpSignatureVerify",
    mount: () => httpSignatureVerify({ keys: { "test-key": servicePublicPem }, nonces: memoryNonceStore() }),
  },
];

interface Sent {
  readonly contentType: string;
  readonly body: string | Buffer;
  /** In place of the signed headers of one Content-Type. */
  readonly headers?: readonly string[] | undefined;
}

/** Headers by which each of the checks lets the request pass. */
function headersFor({ contentType, body }: Sent): readonly string[] {
  const bytes = Buffer.from(body);
  return [
    ...signRequest({ contentType, body: bytes }).headers,
    "X-Hub-Signature-256",
    `sha256=${createHmac("sha256", secret).update(bytes).digest("hex")}`,
  ];
}

interface Seen {
  readonly answer: WireAnswer;
  /** Codes of refusals, or messages of other errors. */
  readonly errors: readonly string[];
}

async function request(
  framework: ExpressFactory,
  sent: Sent,
  chain: readonly (Middleware | RequestHandler)[],
): Promise<Seen> {
  const errors: string[] = [];
  const app = framework();
  app.use(samplePath, ...(chain as readonly RequestHandler[]));
  const onReject = (error: unknown): void => {
    errors.push(isGuardError(error) ? error.code : String(error));
  };
  app.use(guardErrors({ onReject }), ((error, _req, res, _next) => {
    errors.push(String(error));
    res.status(500).end();
  }) satisfies express5.ErrorRequestHandler);
  const { server, port } = await listen(app);
  running.push(server);
  const headers = sent.headers ?? headersFor(sent);
  const answer = await send(port, {
    method: "POST",
    path: samplePath,
    headers,
    body: Buffer.from(sent.body),
  });
  return { answer, errors };
}

/** Answers with what it finds in `req.body`. */
const tell: RequestHandler = (req, res) => {
  const { body } = req as { body: unknown };
  if (Buffer.isBuffer(body)) res.json({ bytes: body.toString("latin1") });
  else res.json({ value: body ?? null, kind: body === undefined ? "undefined" : typeof body });
};

/** As busboy does: reads the request by pipe(). */
const pipe: RequestHandler = (req, res) => {
  const chunks: Buffer[] = [];
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  sink.on("finish", () => res.json({ bytes: Buffer.concat(chunks).toString("latin1") }));
  req.pipe(sink);
};

const iterate: RequestHandler = (req, res) => {
  const read = async (): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    res.json({ bytes: Buffer.concat(chunks).toString("latin1") });
  };
  void read();
};

const json: Sent = { contentType: "application/json", body: '{"amount":10.10,"text":"é😀"}' };
const form: Sent = { contentType: "application/x-www-form-urlencoded", body: "amount=10&text=a+b" };
const text: Sent = { contentType: "text/plain", body: '{"amount":10}' };
const octets: Sent = {
  contentType: "application/octet-stream",
  body: Buffer.from([0, 1, 0xff, 0xfe, 0x80, 0x0a]),
};
const multipart: Sent = {
  contentType: "multipart/form-data; boundary=limit",
  body: [
    "--limit",
    'Content-Disposition: form-data; name="amount"',
    "",
    "10",
    "--limit",
    'Content-Disposition: form-data; name="scan"; filename="a.txt"',
    "Content-Type: text/plain",
    "",
    "some bytes",
    "--limit--",
    "",
  ].join("\r\n"),
};
const large: Sent = { contentType: "application/octet-stream", body: Buffer.alloc(90_000, "0123456789") };

const jsonValue = { value: { amount: 10.1, text: "é😀" }, kind: "object" };
const latin1 = ({ body }: Sent): string => Buffer.from(body).toString("latin1");

interface Row {
  readonly name: string;
  readonly sent: Sent;
  readonly parsers: (parsers: ExpressFactory) => readonly RequestHandler[];
  readonly seen: unknown;
}

const upload = multer();
const tellUpload: RequestHandler = (req, res) => {
  const { body, files } = req as unknown as { body: unknown; files: readonly { readonly buffer: Buffer }[] };
  res.json({ body, files: files.map(({ buffer }) => buffer.toString()) });
};

const reviver = (_key: string, value: unknown): unknown => (typeof value === "number" ? 0 : value);

const rows: readonly Row[] = [
  { name: "JSON without a parser", sent: json, parsers: () => [tell], seen: jsonValue },
  { name: "JSON before json()", sent: json, parsers: (e) => [e.json(), tell], seen: jsonValue },
  {
    name: "JSON before json() twice, and the other parsers",
    sent: json,
    parsers: (e) => [e.urlencoded({ extended: true }), e.text(), e.raw(), e.json(), e.json(), tell],
    seen: jsonValue,
  },
  {
    name: "JSON before a json() that would change it",
    sent: json,
    parsers: (e) => [e.json({ reviver, strict: false }), tell],
    seen: jsonValue,
  },
  {
    name: "JSON before a json() with verify",
    sent: json,
    parsers: (e) => [e.json({ verify: captureRawBody }), tell],
    seen: jsonValue,
  },
  {
    name: "JSON before json() in a router",
    sent: json,
    parsers: (e) => [e.Router().use(e.json()).use(tell)],
    seen: jsonValue,
  },
  {
    name: "JSON before urlencoded() of any type",
    sent: json,
    parsers: (e) => [e.urlencoded({ type: () => true, extended: true }), tell],
    seen: jsonValue,
  },
  {
    name: "the JSON null before json()",
    sent: { ...json, body: "null" },
    parsers: (e) => [e.urlencoded({ extended: false }), tell],
    seen: { value: null, kind: "object" },
  },
  {
    name: "JSON before text() of any type",
    sent: json,
    parsers: (e) => [e.text({ type: () => true }), tell],
    seen: { value: json.body, kind: "string" },
  },
  {
    name: "JSON before raw() of any type",
    sent: json,
    parsers: (e) => [e.raw({ type: () => true }), tell],
    seen: { bytes: latin1(json) },
  },
  { name: "JSON before pipe()", sent: json, parsers: () => [pipe], seen: { bytes: latin1(json) } },
  { name: "JSON before an iteration", sent: json, parsers: () => [iterate], seen: { bytes: latin1(json) } },
  {
    name: "JSON that a handler replaces",
    sent: json,
    parsers: (e) => [
      e.json(),
      (req, _res, next) => {
        req.body = { own: true };
        next();
      },
      e.json(),
      tell,
    ],
    seen: { value: { own: true }, kind: "object" },
  },
  {
    name: "the digits of a number",
    sent: json,
    parsers: () => [(req, res) => void res.json([req.body.amount, numberTextAt(req, "/amount")])],
    seen: [10.1, "10.10"],
  },
  {
    name: "a form before urlencoded()",
    sent: form,
    parsers: (e) => [e.json(), e.urlencoded({ extended: false }), tell],
    seen: { value: { amount: "10", text: "a b" }, kind: "object" },
  },
  {
    name: "text before text()",
    sent: text,
    parsers: (e) => [e.json(), e.text(), tell],
    seen: { value: text.body, kind: "string" },
  },
  {
    name: "octets before raw()",
    sent: octets,
    parsers: (e) => [e.json(), e.raw(), tell],
    seen: { bytes: latin1(octets) },
  },
  {
    name: "octets larger than the buffer of a stream before raw()",
    sent: large,
    parsers: (e) => [e.raw(), tell],
    seen: { bytes: latin1(large) },
  },
  {
    name: "octets before pipe()",
    sent: octets,
    parsers: (e) => [e.json(), pipe],
    seen: { bytes: latin1(octets) },
  },
  {
    name: "octets before an iteration",
    sent: octets,
    parsers: () => [iterate],
    seen: { bytes: latin1(octets) },
  },
  {
    name: "a multipart form before multer",
    sent: multipart,
    parsers: (e) => [e.json(), upload.any(), tellUpload],
    seen: { body: { amount: "10" }, files: ["some bytes"] },
  },
  {
    name: "the bytes in req.rawBody beside a parser",
    sent: form,
    parsers: (e) => [
      e.urlencoded({ extended: false }),
      (req, res) => void res.json([req.rawBody?.toString(), req.body.amount]),
    ],
    seen: [form.body, "10"],
  },
];

const refused: readonly (Row & { readonly seen: readonly [status: number, code: string] })[] = [
  {
    name: "a form without a parser",
    sent: form,
    parsers: () => [tell],
    seen: [415, "media-type-unsupported"],
  },
  {
    name: "a form before json() alone",
    sent: form,
    parsers: (e) => [e.json(), tell],
    seen: [415, "media-type-unsupported"],
  },
  {
    name: "text before json() and urlencoded()",
    sent: text,
    parsers: (e) => [e.json(), e.urlencoded({ extended: true }), tell],
    seen: [415, "media-type-unsupported"],
  },
  {
    name: "JSON in UTF-16 before json()",
    sent: { contentType: "application/json; charset=utf-16le", body: Buffer.from('{"amount":1}', "utf16le") },
    parsers: (e) => [e.json(), tell],
    seen: [415, "media-type-unsupported"],
  },
  {
    name: "another JSON type before a json() that takes it",
    sent: { ...json, contentType: "application/vnd.bank+json" },
    parsers: (e) => [e.json({ type: "application/*+json" }), tell],
    seen: [415, "media-type-unsupported"],
  },
  ...(
    [
      ["a key twice", '{"amount":1,"amount":1000}', "json-duplicate-key"],
      ["half of a surrogate pair", '{"a":"\\ud800"}', "json-lone-surrogate"],
      ["__proto__", '{"__proto__":{"isAdmin":true}}', "json-forbidden-key"],
      ["too many levels", `${"[".repeat(65)}${"]".repeat(65)}`, "json-too-deep"],
      ["a number beyond a double", '{"amount":1e999}', "json-number-range"],
    ] as const
  ).flatMap(([what, body, code]): (Row & { readonly seen: readonly [number, string] })[] => [
    {
      name: `JSON with ${what} without a parser`,
      sent: { ...json, body },
      parsers: () => [tell],
      seen: [400, code],
    },
    {
      name: `JSON with ${what} before json()`,
      sent: { ...json, body },
      parsers: (e) => [e.json(), tell],
      seen: [400, code],
    },
  ]),
];

const ownParsers: readonly (readonly [string, ExpressFactory, ExpressFactory])[] = [
  ["Express 5", express5, express5],
  ["Express 4", express4, express4],
];
// Express 4's parsers also run on Express 5, and the other way round.
const frameworks: typeof ownParsers = [
  ...ownParsers,
  ...(isWhole
    ? ([
        ["Express 5 with body-parser 1", express5, express4],
        ["Express 4 with body-parser 2", express4, express5],
      ] as const)
    : []),
];

describe.each(frameworks)("on %s", (_name, framework, parsers) => {
  describe.each(checks)("after $name", ({ mount }) => {
    test.each(rows)("$name is read as sent", async ({ sent, parsers: follow, seen }) => {
      const { answer, errors } = await request(framework, sent, [mount(), ...follow(parsers)]);
      expect({ errors, status: answer.status }).toEqual({ errors: [], status: 200 });
      expect(JSON.parse(answer.body)).toEqual(seen);
    });

    test.each(refused)("$name is refused", async ({ sent, parsers: follow, seen: [status, code] }) => {
      const { answer, errors } = await request(framework, sent, [mount(), ...follow(parsers)]);
      expect({ errors, status: answer.status }).toEqual({ errors: [code], status });
    });
  });
});

describe.each(frameworks)("on %s", (_name, framework, parsers) => {
  test("two Content-Type lines are refused, whatever the first one is", async () => {
    const body = '{"amount":1}';
    for (const types of [
      ["application/json", "text/plain"],
      ["text/plain", "application/json"],
    ]) {
      const headers = types.flatMap((type) => ["Content-Type", type]);
      const chain = [rawBody(), parsers.json(), parsers.json({ type: () => true }), tell];
      const { answer, errors } = await request(framework, { contentType: "", body, headers }, chain);
      expect({ errors, status: answer.status }).toEqual({ errors: ["media-type-unsupported"], status: 415 });
    }
  });

  test("an empty JSON body stays empty, without an error", async () => {
    for (const framing of [[], ["Transfer-Encoding", "chunked"]]) {
      const headers = ["Content-Type", "application/json", ...framing];
      const chain = [rawBody(), parsers.json(), parsers.text(), tell];
      const { answer, errors } = await request(framework, { contentType: "", body: "", headers }, chain);
      expect({ errors, status: answer.status }).toEqual({ errors: [], status: 200 });
      expect([{}, null]).toContainEqual(Object(JSON.parse(answer.body)).value);
    }
  });

  test("a parser in front that did not read the body leaves it to the check", async () => {
    const chain = [parsers.urlencoded({ extended: true }), parsers.text(), rawBody(), tell];
    const { answer } = await request(framework, json, chain);
    expect(JSON.parse(answer.body)).toEqual(jsonValue);
  });

  test("a parser in front that hands over the bytes has parsed req.body", async () => {
    const chain = [parsers.json({ verify: captureRawBody, reviver }), rawBody(), parsers.json(), tell];
    const { answer } = await request(framework, json, chain);
    expect(JSON.parse(answer.body)).toMatchObject({ value: { amount: 0 } });
  });

  test("a listener in front gets each byte once, and req.body is parsed all the same", async () => {
    let count = 0;
    const listener: RequestHandler = (req, _res, next) => {
      req.on("data", (chunk: Buffer) => (count += chunk.length));
      next();
    };
    const { answer } = await request(framework, json, [listener, rawBody(), parsers.json(), tell]);
    expect(JSON.parse(answer.body)).toEqual(jsonValue);
    expect(count).toBe(Buffer.byteLength(json.body));
  });

  test("a coded body is refused by the check, and no parser inflates it", async () => {
    const headers = ["Content-Type", "application/json", "Content-Encoding", "gzip"];
    const sent: Sent = { contentType: "", body: gzipSync(json.body), headers };
    const { errors } = await request(framework, sent, [rawBody(), parsers.json(), tell]);
    expect(errors).toEqual(["content-encoding-unsupported"]);
  });

  test("a parser's own limit holds for the checked bytes", async () => {
    const { answer } = await request(framework, large, [rawBody(), parsers.raw({ limit: 100 }), tell]);
    expect(answer.status).toBe(500);
  });

  test("the guard's fingerprint is of the sent bytes, whoever parses", async () => {
    const store = memoryIdempotencyStore();
    const key = (): unknown => "key-1";
    const guard = idempotencyGuard({ store, key, reusedStatus: 422 });
    const codes: (readonly string[])[] = [];
    for (const body of ['{"amount":1}', '{"amount":1}', '{"amount": 1}']) {
      const chain = [rawBody(), parsers.json(), guard, tell];
      // oxlint-disable-next-line no-await-in-loop -- each request comes after the one before
      codes.push((await request(framework, { ...json, body }, chain)).errors);
    }
    expect(codes).toEqual([[], ["already-processed"], ["idempotency-key-reused"]]);
  });

  test("a request that nobody has read again ends with its response", async () => {
    const ended: unknown[] = [];
    const look: RequestHandler = (req, res) => {
      req.once("close", () => ended.push(req.readableEnded));
      res.end();
    };
    for (const chain of [
      [rawBody(), look],
      [rawBody(), rawBody(), parsers.json(), look],
    ]) {
      await request(framework, octets, chain);
    }
    expect(ended).toEqual([true, true]);
  });

  test("a logger that reads an ambiguous body after the response gets none", async () => {
    let seen: unknown = "not asked";
    const quiet: RequestHandler = (req, res) => {
      res.on("close", () => (seen = req.body));
      res.end();
    };
    await request(framework, { ...json, body: '{"a":1,"a":2}' }, [rawBody(), quiet]);
    expect(seen).toBeUndefined();
  });
});
