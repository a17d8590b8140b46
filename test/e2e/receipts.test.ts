// A payout whose answer is signed: the service holds a receipt of what became of its very request.
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { request as open, type IncomingMessage } from "node:http";
import { PassThrough, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { payoutPlugin } from "@countersign/fastify";
import { payoutRoute, signedRoute } from "@countersign/fetch";
import { importVerificationKey } from "@countersign/http-message-signatures";
import { createSigner, signResponse, type Signer } from "@countersign/http-signature-verify/sign";
import { memoryIdempotencyStore, type IdempotencyStore } from "@countersign/idempotency";
import { payoutEndpoint, payoutOf } from "countersign/payout";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { ReceiptError, verifyReceipt } from "countersign/client";
import { afterEach, describe, expect, test } from "@jest/globals";
import express4 from "express4";
import { fastify, type FastifyInstance } from "fastify";
import { signPayout } from "../adapters/payout-scene.ts";
import { listenerOf } from "../adapters/fetch-behind-node.ts";
import { expressVersionsWith } from "../support/runs/express-versions.ts";
import { close, listen, send, type WireRequest } from "../support/servers/http-client.ts";
import { samplePath } from "../support/signers/independent-signer.ts";
import { servicePublicPem } from "../support/signers/test-keys.ts";
import { expectWarning } from "../support/runs/expect-warning.ts";

const platformKeys = generateKeyPairSync("ed25519");
const platformKey = importVerificationKey("platform-2026", platformKeys.publicKey);
const localSigner = createSigner(platformKeys.privateKey, "platform-2026");

interface Parts {
  readonly signer?: Signer;
  readonly store?: IdempotencyStore;
  readonly paid?: string[];
}

type Serve = (parts: Parts) => Promise<number>;
const closing: (() => Promise<void>)[] = [];
afterEach(async () => void (await Promise.all(closing.splice(0).map((end) => end()))));

async function listening(app: Parameters<typeof listen>[0]): Promise<number> {
  const { server, port } = await listen(app);
  closing.push(() => close(server));
  return port;
}

function optionsOf(store: IdempotencyStore) {
  return {
    addresses: { allow: ["127.0.0.1"] },
    signature: { keys: { "test-key": servicePublicPem }, nonces: memoryNonceStore() },
    idempotency: { store, waitMs: 0 },
  };
}

const onExpress = (framework: (typeof expressVersions)[number][1]): Serve => {
  return ({ signer = localSigner, store = memoryIdempotencyStore(), paid = [] }) => {
    const app = framework();
    app.post(samplePath, signResponse({ signer }), payoutEndpoint(optionsOf(store)), (req, res) => {
      paid.push(payoutOf(req).idempotencyKey);
      res.json({ status: "acknowledged" });
    });
    return listening(app);
  };
};
const onFetch: Serve = ({ signer = localSigner, store = memoryIdempotencyStore(), paid = [] }) => {
  const route = payoutRoute(optionsOf(store), (_request, { payout }) => {
    paid.push(payout.idempotencyKey);
    return Response.json({ status: "acknowledged" });
  });
  const signed = signedRoute({ signer }, route);
  return listening(listenerOf((request, _path, info) => signed(request, info)));
};

/** A Fastify whose every answer is behind signResponse(). */
async function fastifyWith(signer: Signer, mount: (app: FastifyInstance) => void): Promise<number> {
  const app = fastify({ forceCloseConnections: true });
  const receipts = signResponse({ signer });
  app.addHook("onRequest", (request, reply, done) => {
    receipts(request.raw, reply.raw, (error) => done(error as Error | undefined));
  });
  mount(app);
  closing.push(() => app.close());
  return Number(new URL(await app.listen({ port: 0, host: "127.0.0.1" })).port);
}

const onFastify: Serve = ({ signer = localSigner, store = memoryIdempotencyStore(), paid = [] }) =>
  fastifyWith(signer, (app) => {
    const plugin = payoutPlugin({
      ...optionsOf(store),
      url: samplePath,
      handler(_request, _reply, { payout }) {
        paid.push(payout.idempotencyKey);
        return { status: "acknowledged" };
      },
    });
    void app.register(plugin);
  });

const expressVersions = expressVersionsWith(express4);
const adapters: readonly (readonly [string, Serve])[] = [
  ...expressVersions.map(([name, framework]) => [name, onExpress(framework)] as const),
  ["fastify", onFastify],
  ["fetch", onFetch],
];

/** The status, and what the answer is to the service: a receipt, or why it is none. */
async function statusAndReceipt(port: number, wire: WireRequest, asAnswerTo = wire): Promise<string> {
  const { status, headers, body } = await send(port, wire);
  const rawHeaders = Object.entries(headers).flatMap(([name, value]) => [name, String(value)]);
  const { method, path: target, headers: lines } = asAnswerTo;
  const request = { method, target, rawHeaders: lines };
  const keys = (keyid: string) => (keyid === platformKey.keyid ? platformKey : undefined);
  try {
    const receipt = verifyReceipt({ request, status, rawHeaders, body: Buffer.from(body) }, { keys });
    return `${receipt.status} receipt`;
  } catch (error) {
    if (!(error instanceof ReceiptError)) throw error;
    return `${status} ${error.code}`;
  }
}

describe.each(adapters)("the answer to a payout on %s", (_name, serve) => {
  test("is a receipt, and so is the 409 of its repetition; that of a stranger is not", async () => {
    const port = await serve({});
    const [first, second] = [signPayout(), signPayout()];
    expect(await statusAndReceipt(port, first)).toBe("200 receipt");
    expect(await statusAndReceipt(port, second)).toBe("409 receipt");
    expect(await statusAndReceipt(port, second)).toBe("401 signature-missing");
  });

  test("is no receipt of another request of the same instruction", async () => {
    const port = await serve({});
    expect(await statusAndReceipt(port, signPayout(), signPayout())).toBe("200 signature-mismatch");
  });

  test("is a receipt of the 400 of a body that breaks the schema", async () => {
    expect(await statusAndReceipt(await serve({}), signPayout({ body: "{}" }))).toBe("400 receipt");
  });

  // The payment is done: what comes next is the 409 of a paid key.
  test("is 503 while the signer is out of order, and the payment happens once", async () => {
    let isBroken = true;
    const signer: Signer = {
      ...localSigner,
      sign: async (data) => {
        if (isBroken) throw new Error("out of order");
        return localSigner.sign(data);
      },
    };
    const paid: string[] = [];
    const port = await serve({ signer, paid });
    expect(await statusAndReceipt(port, signPayout())).toBe("503 signature-missing");
    isBroken = false;
    expect(await statusAndReceipt(port, signPayout())).toBe("409 receipt");
    expect(paid).toHaveLength(1);
  });

  test("says 503 under signature when the store does not confirm the payment", async () => {
    const inner = memoryIdempotencyStore();
    const store = Object.assign(Object.create(inner) as typeof inner, {
      claim: inner.claim.bind(inner),
      complete: () => "lost" as const,
    });
    expect(await statusAndReceipt(await serve({ store }), signPayout())).toBe("503 receipt");
    expectWarning(/^\[completion-lost\] .* it belongs to another attempt$/);
  });
});

describe("signResponse in an onRequest hook of Fastify", () => {
  test("lets answers pass that are not signed, as they come", async () => {
    const large = Buffer.alloc(2_000_000, "0123456789abcdef");
    let end = (): void => {};
    const port = await fastifyWith(localSigner, (app) => {
      app.get("/large", () => large);
      app.get("/stream", (_request, reply) => reply.send(Readable.from([large])));
      app.get("/events", (_request, reply) => {
        const events = new PassThrough();
        events.write("data: 1\n\n");
        end = () => void events.end("data: 2\n\n");
        return reply.type("text/event-stream").send(events);
      });
    });
    for (const path of ["/large", "/stream"]) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const { status, body } = await send(port, { method: "GET", path, headers: [], body: Buffer.alloc(0) });
      expect([path, status, body.length]).toEqual([path, 200, large.length]);
    }
    const outgoing = open({ host: "127.0.0.1", port, path: "/events", agent: false }).end();
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    end();
    expect(String(await buffer(incoming))).toBe("data: 1\n\ndata: 2\n\n");
  });

  test("answers 500 where Node refuses the payout's answer, once paid, and goes on", async () => {
    const port = await fastifyWith(localSigner, (app) => {
      const plugin = payoutPlugin({
        ...optionsOf(memoryIdempotencyStore()),
        url: samplePath,
        handler(_request, reply) {
          reply.raw.statusMessage = "\u20ac";
          return { status: "acknowledged" };
        },
      });
      void app.register(plugin);
    });
    const payout = signPayout();
    expect(await statusAndReceipt(port, payout)).toBe("500 signature-missing");
    expect(await statusAndReceipt(port, payout)).toBe("401 signature-missing");
  });
});
