import { createServer, type RequestListener, type Server } from "node:http";
import { connect, type AddressInfo } from "node:net";

/** Runs `work` with the port of a server on loopback, and closes the server. */
export async function withServer<T>(
  listener: RequestListener,
  work: (port: number) => Promise<T>,
): Promise<T> {
  const server = createServer(listener);
  await listening(server);
  try {
    return await work((server.address() as AddressInfo).port);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** Sends the bytes as they are and returns all bytes until the server closes the connection, only the values of Date blanked. */
export async function exchange(port: number, request: string | Uint8Array): Promise<string> {
  const chunks: Buffer[] = [];
  const socket = connect({ port, host: "127.0.0.1" });
  // Not end(): the server would close a connection whose client closed its side before the answer began.
  socket.write(request);
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks)
    .toString("latin1")
    .replace(/^Date: .*$/gim, "Date: -");
}

/** One request with `Connection: close`, so that the answer ends with the connection. */
export function rawRequest(method: string, path: string, body?: string): string {
  const lines = [`${method} ${path} HTTP/1.1`, "Host: platform.example", "Connection: close"];
  if (body !== undefined) lines.push("Content-Type: application/json", `Content-Length: ${body.length}`);
  return [...lines, "", body ?? ""].join("\r\n");
}

async function listening(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
}
