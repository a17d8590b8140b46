import { connect } from "node:net";

/** What became of a connection: the statuses of its answers, in order, and whether the server closed it. */
export interface ConnectionEnd {
  readonly statuses: readonly number[];
  readonly closed: boolean;
}

/**
 * Sends `first` and then `next` on one connection, `next` in the same write or when the first final answer has begun. Resolves when
 * both are answered, or the connection is closed, or nothing came for `patienceMs`, which is silence.
 */
export async function onOneConnection(
  port: number,
  first: string,
  { next, pipelined, patienceMs = 20_000 }: { next: string; pipelined: boolean; patienceMs?: number },
): Promise<ConnectionEnd> {
  const socket = connect({ port, host: "127.0.0.1" });
  let received = "";
  let isNextSent = pipelined;
  const end = (closed: boolean): ConnectionEnd => ({ statuses: statusesOf(received), closed });
  return new Promise((resolve) => {
    const finish = (closed: boolean): void => {
      resolve(end(closed));
      socket.destroy();
    };
    socket.setTimeout(patienceMs, () => finish(false));
    // A reset while the rest of the body is on its way is a closed connection as well.
    socket.on("error", () => finish(true));
    socket.on("end", () => finish(true));
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      const { length } = statusesOf(received);
      if (length >= 2) finish(false);
      else if (length === 1 && !isNextSent) {
        isNextSent = true;
        socket.write(next);
      }
    });
    socket.write(pipelined ? first + next : first);
  });
}

/** A POST with the body in one piece, in chunks, or in chunks that the server has to ask for. */
export function framed(
  framing: "fixed" | "chunked" | "expect",
  { path, body, headers = [] }: { path: string; body: string; headers?: readonly string[] },
): string {
  const isChunked = framing === "chunked";
  const head = [
    `POST ${path} HTTP/1.1`,
    "Host: platform.example",
    isChunked ? "Transfer-Encoding: chunked" : `Content-Length: ${body.length}`,
    ...(framing === "expect" ? ["Expect: 100-continue"] : []),
    ...headers,
  ].join("\r\n");
  return `${head}\r\n\r\n${isChunked ? inChunks(body) : body}`;
}

function inChunks(body: string): string {
  const pieces = body.match(/[^]{1,4096}/g) ?? [];
  return [...pieces, ""].map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`).join("");
}

// An answer of 100 asks for the body and ends nothing.
function statusesOf(received: string): number[] {
  return [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)]
    .map(([, status]) => Number(status))
    .filter((status) => status >= 200);
}
