import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** An HTTP server that listens. */
export interface Listening {
  /** Without a slash at its end. */
  readonly url: string;
  /** Takes no more requests; ends when those under way are answered, or after a second without them. */
  close(): Promise<void>;
}

const closeWaitMs = 1_000;

/** Rejects with the error of node:net when the address cannot be listened on. */
export function listen(listener: RequestListener, host: string, port: number): Promise<Listening> {
  const server = createServer(listener);
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      const { port: listeningPort } = server.address() as AddressInfo;
      const authority = host.includes(":") ? `[${host}]` : host;
      resolve({ url: `http://${authority}:${listeningPort}`, close: () => close(server) });
    });
  });
}

function close(server: Server): Promise<void> {
  const cutOff = setTimeout(() => server.closeAllConnections(), closeWaitMs);
  return new Promise((resolve) => {
    server.close(() => {
      clearTimeout(cutOff);
      resolve();
    });
  });
}
