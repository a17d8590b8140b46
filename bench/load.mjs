// A load generator of raw sockets: client and server share the machine, so the client must cost little beside the server.
import { connect } from "node:net";

/** The bytes of an HTTP/1.1 POST. */
export function serializeRequest(path, { headers, body }) {
  const lines = Object.entries({ host: "127.0.0.1", ...headers, "content-length": Buffer.byteLength(body) });
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${body}`,
  );
}

/** Sends all requests over `connections` sockets, each waiting for its answer before the next; resolves to requests per second. */
export async function sendAll(port, requests, connections) {
  const queue = [...requests];
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: connections }, () => work(port, queue)));
  return requests.length / ((performance.now() - startedAt) / 1000);
}

function work(port, queue) {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    let received = "";
    const next = () => {
      const request = queue.pop();
      if (request === undefined) socket.end(resolve);
      else socket.write(request);
    };
    socket.setEncoding("latin1");
    socket.on("connect", next);
    socket.on("error", reject);
    socket.on("data", (chunk) => {
      received += chunk;
      if (!isComplete(received)) return;
      if (!received.startsWith("HTTP/1.1 200 "))
        socket.destroy(new Error(`answered: ${received.slice(0, 200)}`));
      received = "";
      next();
    });
  });
}

function isComplete(text) {
  const headEnd = text.indexOf("\r\n\r\n");
  if (headEnd === -1) return false;
  const [, length] = /\r\ncontent-length: (\d+)\r\n/i.exec(text) ?? [];
  return length !== undefined && text.length >= headEnd + 4 + Number(length);
}
