// The vectors of requests through the adapters: httpSignatureVerify with the policy of each has the verdict of the engine on all of them,
// and every refusal is the same 401.
import { connect, type AddressInfo } from "node:net";
import { guardErrors } from "@countersign/express";
import { hook, receivedRequest as ofFastify, refusal } from "@countersign/fastify";
import { checkedRoute } from "@countersign/fetch";
import {
  httpSignatureVerifier,
  httpSignatureVerify,
  memoryNonceStore,
  type HttpSignatureVerifyOptions,
} from "@countersign/http-signature-verify";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import express, { type RequestHandler } from "express";
import { fastify } from "fastify";
import { close, listen } from "../support/servers/http-client.ts";
import { importKey, readVectors, type Vector, type VectorMessage } from "./check.mjs";
import { expectWarning } from "../support/runs/expect-warning.ts";

type Options = HttpSignatureVerifyOptions;

// The bytes behind the digest of many a vector.
const hello = Buffer.from('{"hello": "world"}');
const helloDigest = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:";

/** The options that are the policy of a vector; undefined for what no server can be told, or is never sent to one. */
function optionsOf({ time, keys, policies, message, need }: Vector): Options | undefined {
  const [policy, ...others] = policies;
  if (policy === undefined || others.length > 0 || need !== undefined) return undefined;
  const binds = policy.requiredComponents.some((name) => name === "@authority" || name === "@target-uri");
  const origin = originOf(message, binds);
  if ("status" in message || "trailers" in message || origin === "none") return undefined;
  try {
    const known = new Map(keys.map((key) => [key.keyid, importKey(key)]));
    const options: Options = {
      keys: (keyid) => known.get(keyid),
      nonces: memoryNonceStore(),
      ...policy,
      // The engine's has both members, of which a vector gives one.
      tag: policy.tag as Options["tag"],
      ...(origin === undefined ? {} : { origin }),
      allowUnsignedQuery: true,
      allowUnsignedBody: true,
      clock: () => time * 1000,
      threadPool: false,
    };
    httpSignatureVerifier(options);
    return options;
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** What callers see of a server whose scheme and authority the vector tells; `none` where no server has these. */
function originOf({ scheme, authority, headers }: VectorMessage, isDue: boolean): string | undefined {
  if (scheme === undefined && authority === undefined && !isDue) return undefined;
  const host = headers.find(([name]) => name.toLowerCase() === "host")?.[1] ?? "";
  const text = `${scheme ?? "https"}://${authority ?? host}`;
  return URL.canParse(text) ? new URL(text).origin : "none";
}

function bodyOf({ body, headers }: VectorMessage): Buffer {
  if (body !== undefined) return Buffer.from(body, "base64");
  return headers.some(([, value]) => value === helloDigest) ? hello : Buffer.alloc(0);
}

/** Whether the lines can be sent as they are: no pseudo-header lines, and nothing that ends a line. */
function isSendable({ headers }: VectorMessage): boolean {
  return headers.every(([name, value]) => token.test(name) && /^[\t\x20-\x7e]*$/.test(value));
}

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

// A server always knows its scheme, and Node's parser refuses methods that it does not know.
const notForServers = new Set(["scheme-unknown", "authority-port-without-scheme", "method-case"]);

const vectors = [...readVectors().values()].flatMap((file) => file.vectors);
const sent = vectors.flatMap((vector) => {
  const isForServers = isSendable(vector.message) && !notForServers.has(vector.id);
  const options = isForServers ? optionsOf(vector) : undefined;
  return options === undefined ? [] : [{ vector, options }];
});

/** An adapter: the status and the body of the answer to the message of a vector under these options. */
type Ask = (vector: Vector, options: Options) => Promise<{ readonly status: number; readonly body: string }>;

const unauthorized = '{"type":"about:blank","title":"Unauthorized","status":401}';

async function wrongOnes(ask: Ask): Promise<readonly string[]> {
  const wrong: string[] = [];
  for (const { vector, options } of sent) {
    // An adapter of its own each time: the nonce of a vector is used once by each.
    const { status, body } = await ask(vector, { ...options, nonces: memoryNonceStore() });
    const found = status === 200 ? "valid" : "refused";
    // Node's parser has refused some before an adapter has seen them.
    const isUniform = status === 200 || status === 400 || (status === 401 && body === unauthorized);
    if (found !== vector.expected.verdict || !isUniform) wrong.push(`${vector.id}: ${status} ${body}`);
  }
  return wrong;
}

/** One request on a connection of its own, byte for byte. */
async function exchange(port: number, { message }: Vector): Promise<{ status: number; body: string }> {
  const body = bodyOf(message);
  const has = (wanted: string): boolean => message.headers.some(([name]) => name.toLowerCase() === wanted);
  const lines = [
    ...message.headers,
    ...(has("host") ? [] : [["Host", "example.com"]]),
    ...(has("content-length") || has("transfer-encoding") ? [] : [["Content-Length", String(body.length)]]),
    ["Connection", "close"],
  ].map(([name, value]) => `${name}: ${value}\r\n`);
  const socket = connect({ port, host: "127.0.0.1" });
  socket.write(
    Buffer.concat([
      Buffer.from(`${message.method} ${message.target} HTTP/1.1\r\n${lines.join("")}\r\n`, "latin1"),
      body,
    ]),
  );
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  const answer = Buffer.concat(chunks).toString("latin1");
  return { status: Number(answer.slice(9, 12)), body: answer.slice(answer.indexOf("\r\n\r\n") + 4) };
}

test("most of the vectors are requests that can be sent", () => {
  expect(sent.length).toBeGreaterThan(450);
  expect(sent.filter(({ vector }) => vector.expected.verdict === "valid").length).toBeGreaterThan(90);
});

describe("on Express", () => {
  let verify: RequestHandler = (_req, _res, next) => next();
  const app = express();
  app.use((req, res, next) => verify(req, res, next));
  app.use((_req, res) => void res.sendStatus(200));
  app.use(guardErrors());

  test("each vector has its verdict", async () => {
    expectWarning(/^\[signature-covers-little\]/, Infinity);
    const { server, port } = await listen(app);
    const ask: Ask = async (vector, options) => {
      verify = httpSignatureVerify(options) as RequestHandler;
      return exchange(port, vector);
    };
    try {
      expect(await wrongOnes(ask)).toEqual([]);
    } finally {
      await close(server);
    }
  });
});

describe("on Fastify", () => {
  const app = fastify();
  let verify = async (_request: ReturnType<typeof ofFastify>): Promise<unknown> => undefined;
  const check = hook("httpSignatureVerify", async (request) => void (await verify(ofFastify(request))));
  const refuse = refusal({});
  beforeAll(async () => {
    app.addHook("onRequest", (request, reply, next) => {
      check(request, reply, (error) => (error === undefined ? next() : refuse(error, request, reply, next)));
    });
    app.removeAllContentTypeParsers();
    app.addContentTypeParser("*", (_request, _payload, done) => done(null));
    app.setNotFoundHandler((_request, reply) => void reply.code(200).send());
    await app.listen({ port: 0, host: "127.0.0.1" });
  });
  afterAll(() => app.close());

  test("each vector has its verdict", async () => {
    expectWarning(/^\[signature-covers-little\]/, Infinity);
    const { port } = app.server.address() as AddressInfo;
    const ask: Ask = async (vector, options) => {
      verify = httpSignatureVerifier(options);
      return exchange(port, vector);
    };
    expect(await wrongOnes(ask)).toEqual([]);
  });
});

test("on fetch each vector has its verdict", async () => {
  expectWarning(/^\[signature-covers-little\]/, Infinity);
  const ask: Ask = async ({ message }, options) => {
    const verify = httpSignatureVerifier(options);
    const route = checkedRoute(
      { name: "httpSignatureVerify" },
      (received) => verify(received),
      () => new Response("paid"),
    );
    const body = bodyOf(message);
    const request = new Request("https://example.com/", {
      method: "POST",
      headers: message.headers as [string, string][],
      ...(body.length === 0 ? {} : { body }),
    });
    // What is on the wire is the server's to tell; the method of a Request is, of most methods, in upper case.
    Object.defineProperty(request, "method", { value: message.method });
    const response = await route(request, { target: message.target, rawHeaders: message.headers.flat() });
    return { status: response.status, body: await response.text() };
  };
  expect(await wrongOnes(ask)).toEqual([]);
});
