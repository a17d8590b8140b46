import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { close, listen, send } from "../support/servers/http-client.ts";
import { fetchApp, type FetchApp } from "./fetch-adapter.ts";
import { pathOf } from "./node-adapter.ts";
import type { Adapter } from "./scene.ts";

/** The same routes behind a server of node:http, which knows the target as on the wire and the peer. */
export const fetchBehindNode: Adapter = {
  name: "fetch behind node",
  async open(scene) {
    const { server, port } = await listen(listenerOf(fetchApp(scene), scene.kind === "policy"));
    return { port, send: (wire) => send(port, wire), close: () => close(server) };
  },
};

/** `keepsLines`: what `Headers` has merged is told as it came, as the README of fetch asks for. */
export function listenerOf(app: FetchApp, keepsLines = false): RequestListener {
  return (req, res) => {
    const answer = async (): Promise<void> => {
      const { rawHeaders, url: target } = req;
      const info = { clientAddress: req.socket.remoteAddress, target, ...(keepsLines && { rawHeaders }) };
      await write(res, await app(requestOf(req, res), pathOf(req), info));
    };
    answer().catch(() => res.destroy());
  };
}

function requestOf(req: IncomingMessage, res: ServerResponse): Request {
  const headers = new Headers();
  for (let index = 0; index < req.rawHeaders.length; index += 2) {
    const [name = "", value = ""] = req.rawHeaders.slice(index, index + 2);
    // Those of HTTP/2 are no fields.
    if (!name.startsWith(":")) headers.append(name, value);
  }
  const { method = "" } = req;
  const body = ["GET", "HEAD"].includes(method) ? null : (Readable.toWeb(req) as ReadableStream<Uint8Array>);
  const left = new AbortController();
  res.once("close", () => left.abort());
  return new Request(`http://platform.example${pathOf(req)}`, {
    method,
    headers,
    body,
    duplex: "half",
    signal: left.signal,
  });
}

async function write(res: ServerResponse, response: Response): Promise<void> {
  res.statusCode = response.status;
  for (const [name, value] of response.headers) res.appendHeader(name, value);
  res.end(Buffer.from(await response.arrayBuffer()));
}
