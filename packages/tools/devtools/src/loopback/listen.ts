import { createServer, type RequestListener, type Server } from "node:http";

export interface Listening {
  /** Without a trailing slash. */
  readonly url: string;
  /** Waits for requests under way; after a second it cuts them off. */
  close(): Promise<void>;
}

const closeWaitMs = 1_000;

export interface ListenInit {
  readonly host: string;
  /** 0 is a free one. */
  readonly port: number;
  /** Let the process end although this server listens. Default false. */
  readonly isUnref?: boolean | undefined;
}

/** Rejects with node:net's error when the address cannot be listened on. */
export function listen(
  listener: RequestListener,
  { host, port, isUnref = false }: ListenInit,
): Promise<Listening> {
  const server = createServer(listener);
  if (isUnref) server.unref().on("connection", (socket) => socket.unref());
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      resolve({ url: urlOf(server, host), close: () => close(server) });
    });
  });
}

function urlOf(server: Server, host: string): string {
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
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
