// HTTP/2 has no status message (RFC 9113 section 8.3.2): Node warns once in a process of each read or write.
import { once } from "node:events";
import { connect, createServer, type Http2ServerResponse } from "node:http2";
import type { AddressInfo } from "node:net";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";
import type { Middleware } from "@countersign/express";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { expect, test } from "@jest/globals";
import { payoutGuard } from "./kit.ts";

/** Counts each use of the response's status message, since Node warns of the first one only. */
function countUses(res: Http2ServerResponse): () => number {
  let uses = 0;
  Object.defineProperty(res, "statusMessage", {
    get: () => ((uses += 1), ""),
    set() {
      uses += 1;
    },
  });
  return () => uses;
}

interface Row {
  readonly how: string;
  readonly handler: (res: Http2ServerResponse) => void;
  readonly status: number;
  readonly body: RegExp;
  readonly warning?: RegExp;
}

const rows: readonly Row[] = [
  {
    how: "lets a response out",
    handler: (res) => void res.writeHead(200).end("paid"),
    status: 200,
    body: /^paid$/,
  },
  {
    how: "replaces a response",
    handler: (res) => void res.writeHead(409).end(),
    status: 500,
    body: /"status":500/,
    warning: /^\[handler-answered-409\]/,
  },
  {
    how: "responds to a late throw",
    handler() {
      throw new Error("the bank said no");
    },
    status: 500,
    body: /^$/,
    warning: /caught what came after it threw/,
  },
];

test.each(rows)(
  "leaves the status message alone over HTTP/2 when it $how",
  async ({ handler, status, body, warning }) => {
    if (warning !== undefined) expectWarning(warning);
    const guard = payoutGuard({ store: memoryIdempotencyStore(), fingerprint: () => "f" });
    let uses = (): number => -1;
    const server = createServer((req, res) => {
      uses = countUses(res);
      const [nodeReq, nodeRes] = [req, res] as unknown as Parameters<Middleware>;
      guard(nodeReq, nodeRes, () => handler(res));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    try {
      const stream = session.request({ ":method": "POST", "idempotency-key": "op.a.b" });
      const [head] = (await once(stream, "response")) as [{ readonly ":status": number }];
      const chunks: Buffer[] = [];
      for await (const chunk of stream) chunks.push(chunk as Buffer);
      expect({ status: head[":status"], uses: uses() }).toEqual({ status, uses: 0 });
      expect(Buffer.concat(chunks).toString()).toMatch(body);
    } finally {
      session.destroy();
      server.close();
    }
  },
);
