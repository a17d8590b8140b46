// examples/cluster/nginx.conf in a real nginx, where there is one.
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request, type Server } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { buffer, text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { freePort } from "../support/private-process.mjs";
import { reportMissing } from "../support/server-binaries.mjs";

const file = fileURLToPath(new URL("../../examples/cluster/nginx.conf", import.meta.url));
const nginxConf = readFileSync(file, "utf8");
const binary = ["nginx", "/usr/sbin/nginx"].find((name) => spawnSync(name, ["-v"]).status === 0);
if (binary === undefined) reportMissing("nginx", "examples/cluster/nginx.conf is not run in one.");
const describeOnNginx = binary === undefined ? describe.skip : describe;

describeOnNginx("nginx with nginx.conf", () => {
  let places: string;
  let targets: Server[];
  let received: { target: number; url: string | undefined; rawHeaders: readonly string[]; body: Buffer }[];
  let cuts: boolean;
  let nginx: ChildProcess;
  let port: number;

  beforeEach(async () => {
    places = mkdtempSync(path.join(tmpdir(), "cluster-nginx-"));
    received = [];
    cuts = false;
    targets = await Promise.all([0, 1].map(startTarget));
    port = await freePort();
    const conf = path.join(places, "nginx.conf");
    const [one, two] = targets.map((server) => (server.address() as AddressInfo).port);
    const here = nginxConf
      .replace("platform-1:3000", `127.0.0.1:${one}`)
      .replace("platform-2:3000", `127.0.0.1:${two}`)
      .replace("listen 8080", `listen 127.0.0.1:${port}`)
      .replace("listen 4001", `listen 127.0.0.1:${await freePort()}`)
      .replace("/tmp/nginx.pid", path.join(places, "nginx.pid"))
      .replace("/dev/stdout", path.join(places, "access.log"))
      .replace("/dev/stderr", path.join(places, "error.log"))
      .replace("http {", `http {\n${temporaryPaths(places)}`);
    writeFileSync(conf, here);
    nginx = spawn(binary!, ["-p", places, "-c", conf, "-g", "daemon off; master_process off;"], {
      stdio: "ignore",
    });
    await untilListening(port);
  });

  afterEach(async () => {
    const ended = new Promise((resolve) => nginx.once("exit", resolve));
    nginx.kill("SIGTERM");
    await ended;
    for (const server of targets) {
      server.closeAllConnections();
      server.close();
    }
    rmSync(places, { recursive: true, force: true });
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
      const options = { host: "127.0.0.1", port, path: sentPath, method: "POST", headers, agent: false };
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

function temporaryPaths(places: string): string {
  return ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${path.join(places, name)};`)
    .join("\n");
}

async function untilListening(port: number): Promise<void> {
  for (const end = Date.now() + 10_000; Date.now() < end;) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1");
      socket.once("connect", () => resolve(true));
      socket.once("error", () => resolve(false));
      socket.once("connect", () => socket.destroy());
    });
    if (isOpen) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error("nginx does not listen");
}
