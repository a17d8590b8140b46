import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { byProxy, callerField } from "@countersign/test-support/servers/example.ts";

/** A proxy as nginx is set up in the README. */
export interface TestProxy {
  readonly url: string;
  close(): Promise<void>;
}

/** Hands each request on byte by byte, and replaces what it says itself: who calls, and by https. */
export async function startProxy(target: string): Promise<TestProxy> {
  const server = createServer((req, res) => {
    const { method, headers: received, url: path } = req;
    // The caller's own claim, which a test makes, stands for the address of its socket.
    const caller = String(received[callerField.toLowerCase()] ?? byProxy["X-Forwarded-For"]);
    const headers = { ...received, "x-forwarded-for": caller, "x-forwarded-proto": "https" };
    const { hostname: host, port } = new URL(target);
    const outgoing = request({ host, port, method, path, headers, agent: false }, (incoming) => {
      res.writeHead(incoming.statusCode ?? 502, incoming.rawHeaders);
      incoming.pipe(res);
    });
    outgoing.once("error", () => res.destroy());
    req.pipe(outgoing);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
