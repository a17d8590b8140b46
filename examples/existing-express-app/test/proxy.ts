import { request } from "node:http";
import { byProxy, callerField } from "@countersign/test-support/servers/example.ts";
import { served } from "@countersign/test-support/servers/served.ts";

/** Starts a proxy as nginx is set up in the README, until the test has ended: it replaces what it says itself, who calls and by https. */
export function startProxy(target: string): Promise<string> {
  return served((req, res) => {
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
}
