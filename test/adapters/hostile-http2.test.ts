// The policy of hostile.test.ts over HTTP/2, where pseudo-header fields, cut streams and framing are other ones. Express has no HTTP/2.
import { once } from "node:events";
import type { RequestListener } from "node:http";
import {
  connect,
  constants,
  createServer,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type Http2Server,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { fastify } from "fastify";
import { eventually } from "../support/runs/eventually.ts";
import { samplePath } from "../support/signers/independent-signer.ts";
import { mount } from "./fastify-adapter.ts";
import { listenerOf as fetchListener } from "./fetch-behind-node.ts";
import { fetchApp } from "./fetch-adapter.ts";
import { body, fieldsOf, letInRows, refusedRows, type Lines } from "./hostile-http2-rows.ts";
import { listenerOf as nodeListener } from "./node-adapter.ts";
import { letIn, type PolicyScene } from "./scene.ts";
import { policyScene, type OrderPlan } from "./policy-scene.ts";
import { allowWarnings } from "../support/runs/expect-warning.ts";

interface Site {
  readonly port: number;
  close(): Promise<void>;
}

/** Node's compatibility API is what a listener of HTTP/1.1 runs on. */
async function served(listener: RequestListener): Promise<Site> {
  const server: Http2Server = createServer(listener as never);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { port, close: () => new Promise((resolve) => server.close(() => resolve())) };
}

const adapters: readonly (readonly [string, (scene: PolicyScene) => Promise<Site>])[] = [
  ["node:http2", (scene) => served(nodeListener(scene))],
  ["fetch behind node:http2", (scene) => served(fetchListener(fetchApp(scene), true))],
  [
    "fastify",
    async (scene) => {
      const app = fastify({ http2: true });
      mount(app as never, scene);
      await app.listen({ port: 0, host: "127.0.0.1" });
      return { port: (app.server.address() as AddressInfo).port, close: () => app.close() };
    },
  ],
];

interface Answer {
  readonly status: number | undefined;
  readonly text: string;
}

async function answerOf(stream: ClientHttp2Stream): Promise<Answer> {
  let status: number | undefined;
  let text = "";
  stream.on("response", (headers) => (status = headers[":status"]));
  stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
  return new Promise((resolve) => {
    // What the server cuts has no answer.
    stream.once("error", () => undefined);
    stream.once("close", () => resolve({ status, text }));
  });
}

describe.each(adapters)("over HTTP/2 to %s", (_name, open) => {
  let scene: PolicyScene;
  let site: Site;
  let session: ClientHttp2Session;
  beforeAll(async () => {
    scene = policyScene({ nonces: memoryNonceStore({ max: 1_000 }) })();
    site = await open(scene);
    session = connect(`http://127.0.0.1:${site.port}`);
  });
  afterAll(async () => {
    session.destroy();
    await site.close();
  });

  async function ask(
    plan: OrderPlan,
    lines: Lines = {},
    { bytes = body, by = session }: { bytes?: Buffer; by?: ClientHttp2Session } = {},
  ): Promise<Answer> {
    scene.trace.codes.length = 0;
    const stream = by.request(fieldsOf(plan, lines));
    stream.end(bytes);
    return answerOf(stream);
  }

  test.each(letInRows)("lets %s in", async (_title, plan, lines) => {
    const before = scene.trace.ran;
    expect(await ask(plan, lines)).toEqual({ status: 200, text: letIn });
    expect(scene.trace).toMatchObject({ codes: [], ran: before + 1 });
  });

  test.each(refusedRows)("refuses %s (%s)", async (_title, code, plan, lines) => {
    const before = scene.trace.ran;
    const answer = await ask(plan, lines);
    expect([answer.status, JSON.parse(answer.text)]).toEqual([
      401,
      { type: "about:blank", title: "Unauthorized", status: 401 },
    ]);
    expect(scene.trace).toMatchObject({ codes: [code], ran: before });
  });

  test("refuses a covered trailer, which reaches no adapter", async () => {
    scene.trace.codes.length = 0;
    const plan = { further: [['"x-end";tr', "1"]] } as const;
    const stream = session.request(fieldsOf(plan, {}), { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "x-end": "1" }));
    stream.end(body);
    expect((await answerOf(stream)).status).toBe(401);
    expect(scene.trace.codes).toEqual(["component-parameter-unsupported"]);
  });

  test("answers 413 to a body over the limit", async () => {
    // Node warns once in a process of a field of HTTP/1 alone.
    allowWarnings(/^UnsupportedWarning: The provided connection header is not valid/);
    const answer = await ask({}, {}, { bytes: Buffer.alloc(5_000, "x") });
    expect([answer.status, scene.trace.codes]).toEqual([413, ["body-too-large"]]);
  });

  test.each<[string, OrderPlan, Lines]>([
    ["a body of less than its length", {}, { "content-length": "12" }],
    ["a body of more than its length", {}, { "content-length": "10" }],
    ["an absolute target", {}, { ":path": `http://pay.example${samplePath}?id=7` }],
    ["an empty :authority", { further: [['"@authority"', ""]] }, { ":authority": "" }],
    ["a path without a slash", {}, { ":path": "api/v1?id=7" }],
  ])("is cut by the server's session, or refused: %s", async (_title, plan, lines) => {
    const before = scene.trace.ran;
    // Versions of Node differ in whether they end the stream or its session.
    const by = connect(`http://127.0.0.1:${site.port}`);
    by.on("error", () => undefined);
    const { status } = await ask(plan, lines, { by });
    by.destroy();
    expect([undefined, 400, 401]).toContain(status);
    expect(scene.trace.ran).toBe(before);
    expect((await ask({})).status).toBe(200);
  });

  test.each<[string, Lines, number]>([
    ["with a length", { "content-length": String(body.length) }, 5],
    ["without a length", {}, 5],
    ["behind its last byte, without a length", {}, body.length],
  ])("lets no body in that RST_STREAM cuts %s", async (_title, lines, bytes) => {
    const before = scene.trace.ran;
    scene.trace.codes.length = 0;
    let asked = 0;
    const cutScene = policyScene({ clock: () => (asked++, Date.now()) })();
    const cutSite = await open(cutScene);
    const client = connect(`http://127.0.0.1:${cutSite.port}`);
    const stream = client.request(fieldsOf({}, lines));
    const gone = answerOf(stream);
    stream.write(body.subarray(0, bytes));
    await eventually(() => asked > 0);
    stream.close(constants.NGHTTP2_CANCEL);
    await gone;
    // What comes behind it on the session is answered behind it.
    const next = client.request(fieldsOf({}, {}));
    next.end(body);
    expect((await answerOf(next)).status).toBe(200);
    expect(cutScene.trace).toMatchObject({ codes: [], ran: 1 });
    expect(scene.trace.ran).toBe(before);
    client.destroy();
    await cutSite.close();
  });

  test("lets each of twenty streams at once in, and one of twenty with one nonce", async () => {
    const nonce = `n-${site.port}`;
    const sent = Array.from({ length: 40 }, (_, index) => {
      const stream = session.request(fieldsOf(index < 20 ? {} : { nonce }, {}));
      stream.end(body);
      return answerOf(stream);
    });
    const statuses = (await Promise.all(sent)).map(({ status }) => status);
    expect(statuses.slice(0, 20)).toEqual(Array(20).fill(200));
    expect(statuses.slice(20).filter((status) => status === 200)).toHaveLength(1);
  });
});
