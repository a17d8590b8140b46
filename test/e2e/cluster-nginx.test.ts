// examples/cluster/nginx.conf in a real nginx, where there is one.
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer, text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { nginxBinary, startClusterNginx, type ClusterNginx } from "../support/servers/cluster-nginx.ts";
import { reportMissing } from "../support/servers/server-binaries.mjs";

if (nginxBinary === undefined) reportMissing("nginx", "examples/cluster/nginx.conf is not run in one.");
const describeOnNginx = nginxBinary === undefined ? describe.skip : describe;

describeOnNginx("nginx with nginx.conf", () => {
  let targets: Server[];
  let received: { target: number; url: string | undefined; rawHeaders: readonly string[]; body: Buffer }[];
  let cuts: boolean;
  let nginx: ClusterNginx;

  beforeEach(async () => {
    received = [];
    cuts = false;
    targets = await Promise.all([0, 1].map(startTarget));
    const [one, two] = targets.map((server) => (server.address() as AddressInfo).port);
    nginx = await startClusterNginx([one!, two!]);
  });

  afterEach(async () => {
    await nginx.close();
    for (const server of targets) {
      server.closeAllConnections();
      server.close();
    }
  });

  async function startTarget(target: number): Promise<Server> {
    const server = createServer((req, res) => {
      void (async () => {
        const { url, rawHeaders } = req;
        received.push({ target, url, rawHeaders, body: await buffer(req) });
        if (cuts) req.socket.destroy();
        else res.end(`target ${target}`);
      })();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  function send(
    sentPath: string,
    headers: Readonly<Record<string, string>> = {},
    body: Buffer | string = "body",
  ): Promise<{ readonly status: number | undefined; readonly body: string }> {
    return new Promise((resolve, reject) => {
      const options = {
        host: "127.0.0.1",
        port: nginx.port,
        path: sentPath,
        method: "POST",
        headers,
        agent: false,
      };
      const outgoing = request(options, (incoming) => {
        resolve(text(incoming).then((read) => ({ status: incoming.statusCode, body: read })));
      });
      outgoing.on("error", reject);
      outgoing.end(body);
    });
  }

  test("hands on path, host, signed fields and body as they came, and says itself who calls", async () => {
    const signed = {
      host: "platform.example:8080",
      "content-type": "application/json",
      "content-digest": "sha-256=:AAAA=:",
      "signature-input": 'sig1=("@method" "@path");created=1;nonce="a"',
      signature: "sig1=:AAAA=:",
    };
    const body = Buffer.from([0, 255, 13, 10, 128]);
    const claims = {
      "x-forwarded-for": "198.51.100.1",
      "x-forwarded-proto": "https",
      forwarded: "for=1.1.1.1",
    };
    const sentPath = "/API/v1//a%2Fb/./c?x=%61&y";
    expect((await send(sentPath, { ...signed, ...claims, "x-forwarded-host": "evil" }, body)).status).toBe(
      200,
    );
    const [one] = received;
    expect(one?.url).toBe(sentPath);
    expect(one?.body.equals(body)).toBe(true);
    const valueOf = (wanted: string): readonly string[] =>
      (one?.rawHeaders ?? []).filter(
        (_, index, all) => index % 2 === 1 && all[index - 1]?.toLowerCase() === wanted,
      );
    for (const [name, value] of Object.entries(signed)) expect(valueOf(name)).toEqual([value]);
    expect(valueOf("x-forwarded-for")).toEqual(["127.0.0.1"]);
    expect(valueOf("x-forwarded-proto")).toEqual(["http"]);
    expect([...valueOf("x-forwarded-host"), ...valueOf("forwarded")]).toEqual([]);
  });

  test("takes the platforms in turn, and goes on with one when the other is gone", async () => {
    const both = [await send("/"), await send("/")].map(({ body }) => body);
    expect(new Set(both)).toEqual(new Set(["target 0", "target 1"]));
    targets[0]!.closeAllConnections();
    await new Promise((resolve) => targets[0]!.close(resolve));
    for (const { status, body } of [await send("/"), await send("/"), await send("/")]) {
      expect([status, body]).toEqual([200, "target 1"]);
    }
  });

  test("sends no payout twice by itself", async () => {
    cuts = true;
    expect((await send("/")).status).toBe(502);
    expect(received).toHaveLength(1);
  });

  test("leaves a body that is too large to the platform", async () => {
    expect((await send("/", {}, Buffer.alloc(1_500_000))).status).toBe(200);
  });
});
