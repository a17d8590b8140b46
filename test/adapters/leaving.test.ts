import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, test } from "@jest/globals";
import express5 from "express";
import express4 from "express4";
import type { WireRequest } from "../support/servers/http-client.ts";
import { eventually } from "../support/runs/eventually.ts";
import { expressAdapter } from "./express-adapter.ts";
import { fastifyAdapter } from "./fastify-adapter.ts";
import { fetchBehindNode } from "./fetch-behind-node.ts";
import { nodeAdapter } from "./node-adapter.ts";
import { payoutScene, signPayout } from "./payout-scene.ts";
import type { OpenAdapter, PayoutScene } from "./scene.ts";
import { steps } from "./store-steps.ts";

const servers = [
  expressAdapter("express 5", express5),
  expressAdapter("express 4", express4),
  nodeAdapter,
  fastifyAdapter,
  fetchBehindNode,
];

/** Sends `part` of the request, waits until `then` holds, and leaves. */
async function leave(
  port: number,
  { method, path, headers, body }: WireRequest,
  { bytes = body.length, when }: { bytes?: number; when: () => boolean },
): Promise<void> {
  const lines = [`${method} ${path} HTTP/1.1`, "Host: platform.example", `Content-Length: ${body.length}`];
  for (let index = 0; index < headers.length; index += 2)
    lines.push(`${headers[index]}: ${headers[index + 1]}`);
  const socket = connect({ port, host: "127.0.0.1" });
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  socket.write(body.subarray(0, bytes));
  await eventually(when);
  socket.destroy();
  await once(socket, "close");
}

async function opened(
  adapter: (typeof servers)[number],
  scene: PayoutScene,
  work: (port: number, send: OpenAdapter["send"]) => Promise<void>,
): Promise<void> {
  const { port, send, close } = await adapter.open(scene);
  try {
    await work(port as number, send);
  } finally {
    await close();
  }
}

describe.each(servers)("a client that leaves $name", (adapter) => {
  test("half way through its body is refused in silence", async () => {
    let asked = 0;
    const scene = payoutScene({ options: { signature: { clock: () => (asked++, Date.now()) } } })();
    await opened(adapter, scene, async (port, send) => {
      await leave(port, signPayout(), { bytes: 20, when: () => asked > 0 });
      // Behind it a genuine one shows that nothing is stuck.
      await expect(send(signPayout())).resolves.toMatchObject({ status: 200 });
    });
    expect(scene.trace).toMatchObject({ codes: [], ran: 1 });
  });

  test("while its payout is under way elsewhere stops waiting", async () => {
    let claims = 0;
    const scene = payoutScene({
      options: { idempotency: { waitMs: 60_000 } },
      before: (store, key, fingerprint) =>
        store.claim(key, { token: "another", fingerprint, leaseMs: 60_000, recovery: "hold" }),
      storeOf: (inner) => ({
        ...steps(inner),
        claim: (key, claim) => (claims++, inner.claim(key, claim)),
      }),
    })();
    await opened(adapter, scene, async (port) => {
      await leave(port, signPayout(), { when: () => claims > 0 });
    });
    expect(scene.trace).toMatchObject({ codes: [], ran: 0 });
    expect(scene.trace.recorded?.()).toBe("running");
  });

  test("while its handler works has its payout recorded as done", async () => {
    let finish: () => void = () => undefined;
    const scene = payoutScene({
      handler: async () => {
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
        return { status: 200 };
      },
    })();
    await opened(adapter, scene, async (port) => {
      await leave(port, signPayout(), { when: () => scene.trace.ran > 0 });
      finish();
      await eventually(() => scene.trace.recorded?.() === "done");
    });
    expect(scene.trace).toMatchObject({ codes: [], ran: 1 });
  });

  test.each<[string, Parameters<typeof payoutScene>[0]]>([
    ["its handler works", {}],
    ["its handler works behind the lookup of its business", { options: { findBusiness: () => true } }],
  ])(
    "while %s has its key held when that fails: it may have paid, and failed to answer",
    async (_when, init) => {
      let fail: (error: Error) => void = () => undefined;
      const handler = () => new Promise<never>((_resolve, reject) => (fail = reject));
      const scene = payoutScene({ ...init, handler })();
      await opened(adapter, scene, async (port, send) => {
        await leave(port, signPayout(), { when: () => scene.trace.ran > 0 });
        // Behind it the server has seen that the client has left.
        await send({ method: "GET", path: "/elsewhere", headers: [], body: Buffer.alloc(0) });
        fail(new Error("Premature close"));
        await eventually(() => scene.trace.recorded?.() === "held");
        await expect(send(signPayout({ nonce: randomUUID() }))).resolves.toMatchObject({ status: 503 });
      });
      expect(scene.trace.ran).toBe(1);
    },
  );

  test("while its business is looked up has its key given back when that fails: nothing was paid", async () => {
    let fail: (error: Error) => void = () => undefined;
    let asked = 0;
    const scene = payoutScene({
      options: {
        findBusiness: () => {
          if (++asked > 1) return true;
          return new Promise<true>((_resolve, reject) => (fail = reject));
        },
      },
    })();
    await opened(adapter, scene, async (port, send) => {
      await leave(port, signPayout(), { when: () => asked > 0 });
      await send({ method: "GET", path: "/elsewhere", headers: [], body: Buffer.alloc(0) });
      fail(new Error("the database is away"));
      await eventually(() => scene.trace.recorded?.() === "free");
      await expect(send(signPayout({ nonce: randomUUID() }))).resolves.toMatchObject({ status: 200 });
    });
    expect(scene.trace.ran).toBe(1);
  });
});
