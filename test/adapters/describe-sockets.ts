// Byte for byte to every adapter that has a server of Node's: whatever comes, the handler sees no order that was not signed as it arrived,
// and the server goes on. jest fails a test during which an error or a rejection was handled by nobody.
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { socketRows } from "./hostile-socket-rows.ts";
import { policyScene, signOrder } from "./policy-scene.ts";
import { check, rawOrder, server, type Outcome } from "./raw-order.ts";
import type { Adapter, OpenAdapter, PolicyScene } from "./scene.ts";
import { deliver, hookPath, webhookScene } from "./webhook-scene.ts";

/** All that comes back until the connection ends. `leaves`: the client's side ends with the last byte. */
async function answersTo(port: number, bytes: Buffer, leaves: boolean): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1" });
  let received = "";
  socket.on("data", (chunk) => (received += chunk.toString("latin1")));
  socket.write(bytes);
  if (leaves) socket.end();
  await new Promise<void>((resolve) => {
    // A reset while the rest is on its way is an end as well.
    socket.once("error", () => resolve());
    socket.once("close", () => resolve());
  });
  return received;
}

const statusesOf = (received: string): readonly number[] =>
  [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));

const refusal = '{"type":"about:blank","title":"Unauthorized","status":401}';

const hookRows: readonly (readonly [string, string, readonly string[], readonly Outcome[]])[] = [
  ["the absolute form of https", `https://a.example${hookPath}`, [], check("https-required", 403)],
  ["the absolute form of HTTPS", `HTTPS://a.example${hookPath}`, [], check("https-required", 403)],
  ["https in a proxy's field", hookPath, ["X-Forwarded-Proto: https"], check("https-required", 403)],
  ["two Hosts", hookPath, ["Host: b.example"], check("host-repeated", 400)],
];
// Some routers find nothing by the absolute form, and Hono's server takes no scheme in capitals.
const unrouted: readonly Outcome[] = [...server(404), ...server(400)];

/** The rows as bytes on connections to each of the adapters, and many connections at once. */
export function describeSockets(adapters: readonly Adapter[]): void {
  describe.each(adapters)("on a socket to the adapter $name", (adapter) => {
    let scene: PolicyScene;
    let opened: OpenAdapter & { readonly port?: number };
    beforeAll(async () => {
      scene = policyScene({ nonces: memoryNonceStore({ max: 1_000 }) })();
      opened = await adapter.open(scene);
    });
    afterAll(() => opened.close());

    test.each(socketRows)("$title", async ({ bytes, outcomes, leaves = false }) => {
      const { trace } = scene;
      trace.codes.length = 0;
      const ranBefore = trace.ran;
      const received = await answersTo(Number(opened.port), bytes(), leaves);
      const seen: Outcome = { statuses: statusesOf(received), codes: [...trace.codes] };
      expect(outcomes).toContainEqual(seen);
      expect(trace.ran - ranBefore).toBe(seen.statuses.filter((status) => status === 200).length);
      expect(received.split(refusal).length - 1).toBe(
        seen.statuses.filter((status) => status === 401).length,
      );
      // And the server goes on.
      expect((await opened.send(signOrder())).status).toBe(200);
    });

    test("of ten connections with one order at once, one is let in", async () => {
      const { trace } = scene;
      trace.codes.length = 0;
      const order = rawOrder();
      const received = await Promise.all(
        Array.from({ length: 10 }, () => answersTo(Number(opened.port), order, false)),
      );
      expect(
        [200, 401].map((status) => received.flatMap(statusesOf).filter((one) => one === status).length),
      ).toEqual([1, 9]);
      expect(trace.codes).toEqual(Array(9).fill("nonce-replayed"));
    });
  });
}

/** What a webhook that demands https is told over plain TCP. */
export function describePlainTcp(adapters: readonly Adapter[]): void {
  describe.each(adapters)("over plain TCP to a webhook of the adapter $name", (adapter) => {
    test.each(hookRows)("is refused: %s", async (_title, target, lines, outcomes) => {
      const scene = webhookScene(false, { options: { https: {} } })();
      const opened: OpenAdapter & { readonly port?: number } = await adapter.open(scene);
      const { headers, body } = deliver();
      const signed = headers.flatMap((name, at) =>
        at % 2 === 0 ? [`${name}: ${headers[at + 1] ?? ""}`] : [],
      );
      const head = ["Host: a.example", "Connection: close", `Content-Length: ${body.length}`, ...lines];
      const text = [`POST ${target} HTTP/1.1`, ...head, ...signed, "", body.toString("latin1")].join("\r\n");
      const received = await answersTo(Number(opened.port), Buffer.from(text, "latin1"), false);
      await opened.close();
      const seen: Outcome = { statuses: statusesOf(received), codes: scene.trace.codes };
      expect([...outcomes, ...(target === hookPath ? [] : unrouted)]).toContainEqual(seen);
    });
  });
}
