import { createHash, createPublicKey, verify } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { close, listen } from "@countersign/test-support/servers/http-client.ts";

/** One request as it arrived, and what an independent reading of it gives. */
export interface Received {
  readonly method: string;
  readonly target: string;
  readonly rawHeaders: readonly string[];
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
  readonly remoteAddress: string;
  readonly params: Readonly<Record<string, string>>;
  readonly signatureBase: string;
  readonly signatureValid: boolean;
  readonly digestValid: boolean;
}

/** A platform that shares no code with the project: node:crypto and string concatenation (RFC 9421 section 2.5). */
export interface TestPlatform {
  readonly url: string;
  readonly received: Received[];
  readonly close: () => Promise<void>;
}

export async function startPlatform(keys: Readonly<Record<string, string>>): Promise<TestPlatform> {
  const received: Received[] = [];
  const { server, port } = await listen(platformHandler(keys, received));
  return {
    url: `http://127.0.0.1:${port}/api/v1/transaction`,
    received,
    close: () => close(server),
  };
}

export function platformHandler(
  keys: Readonly<Record<string, string>>,
  received: Received[],
): (req: IncomingMessage, res: ServerResponse) => void {
  const nonces = new Set<string>();
  const paid = new Set<string>();
  return async (req, res) => {
    const request = read(req, await buffer(req), keys);
    received.push(request);
    const status = judge(request, nonces, paid);
    res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ status }));
  };
}

function judge(
  { params, signatureValid, digestValid, body }: Received,
  nonces: Set<string>,
  paid: Set<string>,
): number {
  const now = Date.now() / 1000;
  const timely = Number(params["created"]) <= now + 30 && now <= Number(params["expires"]);
  const nonce = params["nonce"] ?? "";
  if (!signatureValid || !digestValid || !timely || nonces.has(nonce)) return 401;
  nonces.add(nonce);
  const { idempotency_key: key } = JSON.parse(body.toString("utf8")) as { idempotency_key: string };
  if (paid.has(key)) return 409;
  paid.add(key);
  return 200;
}

function read(req: IncomingMessage, body: Buffer, keys: Readonly<Record<string, string>>): Received {
  const input = String(req.headers["signature-input"]);
  const [, covered = "", tail = ""] = /^[a-z0-9]+=\(([^)]*)\)(.*)$/.exec(input) ?? [];
  const params = Object.fromEntries(
    tail
      .split(";")
      .slice(1)
      .map((part) => part.split("="))
      .map(([name = "", value = ""]) => [name, value.replaceAll('"', "")]),
  );
  const lines = covered.split(" ").map((name) => `${name}: ${componentValue(req, name.replaceAll('"', ""))}`);
  const signatureBase = [...lines, `"@signature-params": (${covered})${tail}`].join("\n");
  const signature = /^[a-z0-9]+=:(.*):$/.exec(String(req.headers["signature"]))?.[1] ?? "";
  const pem = keys[params["keyid"] ?? ""];
  return {
    method: req.method ?? "",
    target: req.url ?? "",
    rawHeaders: req.rawHeaders,
    headers: req.headers,
    body,
    remoteAddress: req.socket.remoteAddress ?? "",
    params,
    signatureBase,
    signatureValid:
      pem !== undefined &&
      verify(null, Buffer.from(signatureBase), createPublicKey(pem), Buffer.from(signature, "base64")),
    digestValid:
      req.headers["content-digest"] === `sha-256=:${createHash("sha256").update(body).digest("base64")}:`,
  };
}

function componentValue(req: IncomingMessage, name: string): string {
  if (name === "@method") return String(req.method);
  if (name === "@path") return String(req.url).split("?")[0] ?? "";
  if (name === "@query") return `?${String(req.url).split("?")[1] ?? ""}`;
  if (name === "@authority") return String(req.headers.host);
  return String(req.headers[name]);
}
