import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, test } from "@jest/globals";
import { jwksKeys } from "@countersign/http-signature-verify";
import { selfSignedCertificate, testAuthority } from "@countersign/test-support/servers/certificates.ts";
import { countTurns, largeSet, setOf } from "./live-keys-bench.ts";
import type { JwksKeysOptions } from "../dist/jwks-keys.js";

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function serve(server: Server): Promise<number> {
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

async function answering(listener: RequestListener, options: JwksKeysOptions = {}): Promise<string> {
  const port = await serve(createServer(listener));
  const store = jwksKeys(`http://127.0.0.1:${port}/jwks`, { allowHttpOnLoopback: true, ...options });
  try {
    await store.ready();
    return store
      .keys()
      .map(({ keyid }) => keyid)
      .join();
  } catch (error) {
    return (error as Error).message;
  } finally {
    store.close();
  }
}

const json = (res: ServerResponse, document: unknown = setOf("a"), type = "application/json"): void => {
  res.setHeader("Content-Type", type);
  res.end(typeof document === "string" || Buffer.isBuffer(document) ? document : JSON.stringify(document));
};
const redirect = (res: ServerResponse, location: string): void => {
  res.writeHead(302, { Location: location }).end();
};

describe("what jwksKeys takes of a server", () => {
  test.each(["application/json", "application/jwk-set+json; charset=utf-8", "Application/JSON"])(
    "the media type %s",
    async (type) => {
      expect(await answering((_req, res) => json(res, setOf("a"), type))).toBe("a");
    },
  );

  test("a compressed set", async () => {
    const listener: RequestListener = (_req, res) => {
      res.setHeader("Content-Encoding", "gzip");
      json(res, gzipSync(JSON.stringify(setOf("a"))));
    };
    expect(await answering(listener)).toBe("a");
  });
});

test("a large set is read in several turns of the event loop", async () => {
  const turns = countTurns();
  const listener: RequestListener = (_req, res) => json(res, largeSet);
  const keyids = await answering(listener, { validity: turns.validity });
  expect(turns.end()).toBeGreaterThan(1);
  expect(keyids.split(",")).toHaveLength(largeSet.keys.length);
});

describe("what jwksKeys refuses of a server", () => {
  test.each<[string, RequestListener, RegExp, JwksKeysOptions?]>([
    ["a page with status 200", (_req, res) => json(res, "<html>", "text/html"), /media type/],
    ["JSON that says it is text", (_req, res) => json(res, setOf("a"), "text/plain"), /media type/],
    ["no media type", (_req, res) => void res.end(JSON.stringify(setOf("a"))), /media type/],
    ["a page that says it is JSON", (_req, res) => json(res, "<html>"), /no JSON/],
    ["a set that is cut short", (_req, res) => json(res, '{"keys":[{"kty":"OKP"'), /no JSON/],
    ["other bytes than UTF-8", (_req, res) => json(res, Buffer.from([0x22, 0xff, 0x22])), /no JSON/],
    ["a single JWK", (_req, res) => json(res, setOf("a").keys[0]), /no JWK Set/],
    ["a list", (_req, res) => json(res, [setOf("a")]), /no JWK Set/],
    ["keys that are no list", (_req, res) => json(res, { keys: { a: setOf("a").keys[0] } }), /no JWK Set/],
    ["null", (_req, res) => json(res, "null"), /no JWK Set/],
    ["status 404", (_req, res) => void res.writeHead(404).end("{}"), /status 404/],
    ["status 204", (_req, res) => void res.writeHead(204).end(), /status 204/],
    [
      "more keys than allowed",
      (_req, res) => json(res, setOf("a", "b", "c")),
      /more than 2 keys/,
      { maxKeys: 2 },
    ],
    ["a redirect, also within its origin", (_req, res) => redirect(res, "/other"), /status 302/],
  ])("%s", async (_title, listener, expected, ...[options]) => {
    expect(await answering(listener, options)).toMatch(expected);
  });

  test.each<[string, RequestListener]>([
    ["that says its length", (_req, res) => json(res, JSON.stringify(setOf("a")) + " ".repeat(1e6))],
    [
      "without end",
      (_req, res) => {
        res.setHeader("Content-Type", "application/json");
        const more = (): void => {
          while (!res.destroyed && res.write(" ".repeat(10_000)));
        };
        res.on("drain", more);
        more();
      },
    ],
    [
      "that is small on the wire",
      (_req, res) => {
        res.setHeader("Content-Encoding", "gzip");
        json(res, gzipSync(JSON.stringify(setOf("a")) + " ".repeat(1e6)));
      },
    ],
  ])("a huge set %s", async (_title, listener) => {
    expect(await answering(listener, { maxBytes: 10_000 })).toBe(
      "jwksKeys: the key set has more than 10000 bytes",
    );
  });

  test.each<[string, (res: ServerResponse) => void]>([
    ["nothing at all", () => {}],
    ["one byte now and then", (res) => void setInterval(() => res.write(" "), 10).unref()],
  ])("%s, within its time", async (_title, drip) => {
    let closed: Promise<unknown> | undefined;
    const listener: RequestListener = (_req, res) => {
      closed = once(res, "close");
      res.setHeader("Content-Type", "application/json");
      drip(res);
    };
    expect(await answering(listener, { timeoutMs: 200 })).toBe(
      "jwksKeys: the key set did not come within 200 ms",
    );
    // The connection is given back.
    await closed;
  });
});

test.each([
  ["whose certificate is trusted", true, "a"],
  ["whose certificate nobody knows", false, "jwksKeys: fetch failed (DEPTH_ZERO_SELF_SIGNED_CERT)"],
])("https of a server %s", async (_title, trusted, expected) => {
  const authority = testAuthority();
  const { key, cert } = trusted ? authority.issue() : selfSignedCertificate();
  const port = await serve(createTlsServer({ key, cert }, (_req, res) => json(res)));
  const folder = mkdtempSync(path.join(tmpdir(), "countersign-jwks-"));
  try {
    const file = path.join(folder, "authority.pem");
    writeFileSync(file, authority.cert);
    // In a process of its own: Node reads its further authorities at the start.
    const script = `
      import { jwksKeys } from ${JSON.stringify(import.meta.resolve("@countersign/http-signature-verify"))};
      const store = jwksKeys("https://127.0.0.1:${port}/");
      await store.ready().catch((error) => process.stdout.write(error.message));
      process.stdout.write(store.keys().map(({ keyid }) => keyid).join());`;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: file, NODE_OPTIONS: "" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let out = "";
    child.stdout.on("data", (chunk) => (out += String(chunk)));
    // It ends by itself: the timer of the next fetch keeps no process alive.
    expect(await once(child, "close")).toEqual([0, null]);
    expect(out).toBe(expected);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
