import {
  createServer,
  request,
  type IncomingHttpHeaders,
  type RequestListener,
  type Server,
} from "node:http";
import type { AddressInfo } from "node:net";
import { finished } from "node:stream/promises";

export async function listen(app: RequestListener): Promise<{ server: Server; port: number }> {
  const server = createServer(app);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, port: (server.address() as AddressInfo).port };
}

export async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

export interface WireRequest {
  readonly method: string;
  /** Sent as it is, also in absolute form. */
  readonly path: string;
  /** Names and values in turn, sent in this order and with repetitions. */
  readonly headers: readonly string[];
  readonly body: Buffer;
}

export interface WireAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Sends a request whose header lines are exactly the given ones plus Host and Content-Length. */
export async function send(port: number, wire: WireRequest): Promise<WireAnswer> {
  const headers = ["Host", `127.0.0.1:${port}`, ...wire.headers];
  if (
    !wire.headers.some(
      (name, index) => index % 2 === 0 && /^(?:content-length|transfer-encoding)$/i.test(name),
    )
  ) {
    headers.push("Content-Length", String(wire.body.length));
  }
  const outgoing = request({
    host: "127.0.0.1",
    port,
    method: wire.method,
    path: wire.path,
    headers,
    agent: false,
  });
  outgoing.end(wire.body);
  return new Promise((resolve, reject) => {
    outgoing.on("error", reject);
    outgoing.on("response", (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      finished(incoming).then(
        () =>
          resolve({
            status: incoming.statusCode ?? 0,
            headers: incoming.headers,
            body: Buffer.concat(chunks).toString(),
          }),
        reject,
      );
    });
  });
}
