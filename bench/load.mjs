// A load generator of raw sockets: client and server share the machine, so the client must cost little beside the server.
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** The bytes of an HTTP/1.1 POST. */
export function serializeRequest(path, { headers, body }) {
  const lines = Object.entries({ host: "127.0.0.1", ...headers, "content-length": Buffer.byteLength(body) });
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${body}`,
  );
}

/**
 * Sends all requests over `connections` sockets, each waiting for its answer before the next, which has to have this status; resolves
 * to requests per second.
 */
export async function sendAll(port, requests, connections, status = 200) {
  const queue = [...requests];
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: connections }, () => work(port, queue, status)));
  return requests.length / ((performance.now() - startedAt) / 1000);
}

/** Sends all requests, `perSecond` of them, whether or not earlier ones were answered. Resolves when all were answered. */
export async function sendPaced(port, requests, perSecond) {
  const queue = [];
  const senders = Array.from({ length: 64 }, () => new Sender(port));
  const startedAt = performance.now();
  const answers = [];
  let sent = 0;
  const idle = [...senders];
  const pump = () => {
    while (idle.length > 0 && queue.length > 0) {
      const sender = idle.pop();
      answers.push(sender.send(queue.shift()).then(() => (idle.push(sender), pump())));
    }
  };
  while (sent < requests.length) {
    const due = Math.min(requests.length, Math.floor(((performance.now() - startedAt) / 1000) * perSecond));
    while (sent < due) queue.push(requests[sent++]);
    pump();
    // oxlint-disable-next-line no-await-in-loop -- the pace
    await delay(2);
  }
  while (queue.length > 0 || idle.length < senders.length) {
    // oxlint-disable-next-line no-await-in-loop -- the last answers
    await delay(2);
  }
  await Promise.all(answers);
  for (const sender of senders) sender.close();
}

/** Asks `path` over and over, with a pause, until `until` is settled; resolves to the milliseconds of each answer. */
export async function probe(port, path, until) {
  const sender = new Sender(port);
  const request = Buffer.from(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`);
  const took = [];
  const state = { over: false };
  void until.finally(() => (state.over = true));
  while (!state.over) {
    const startedAt = performance.now();
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await sender.send(request);
    took.push(performance.now() - startedAt);
    // oxlint-disable-next-line no-await-in-loop -- see above
    await delay(3);
  }
  sender.close();
  return took;
}

/** One connection, one request at a time. */
class Sender {
  #socket;
  #received = "";
  #answered;
  #failed;

  constructor(port) {
    this.#socket = connect({ port, host: "127.0.0.1", noDelay: true }).setEncoding("latin1");
    this.#socket.on("error", (error) => this.#failed?.(error));
    this.#socket.on("data", (chunk) => {
      this.#received += chunk;
      if (!isComplete(this.#received)) return;
      const received = this.#received;
      this.#received = "";
      if (received.startsWith("HTTP/1.1 200 ")) this.#answered();
      else this.#failed(new Error(`answered: ${received.slice(0, 200)}`));
    });
  }

  send(request) {
    return new Promise((resolve, reject) => {
      this.#answered = resolve;
      this.#failed = reject;
      this.#socket.write(request);
    });
  }

  close() {
    this.#socket.destroy();
  }
}

function work(port, queue, status) {
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
      if (!received.startsWith(`HTTP/1.1 ${status} `))
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
