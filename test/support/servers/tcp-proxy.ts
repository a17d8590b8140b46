import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** A line to a server, with faults on demand. */
export interface TcpProxy {
  readonly port: number;
  /** What clients send from now on arrives this many milliseconds later, in order. */
  delay(ms: number): void;
  /** How many messages of clients have not arrived because of that. */
  waiting(): number;
  /**
   * The server gets everything, its answers are lost. When that ends, the connections that lost bytes are cut: the next answer
   * would be taken for the lost one.
   */
  dropReplies(drop: boolean): void;
  /** How many answers have been lost. */
  lost(): number;
  /** Resets every connection; new ones are accepted. */
  cut(): void;
  /** New connections are reset at once. */
  refuse(refuse: boolean): void;
  /** No more faults. */
  restore(): void;
  close(): Promise<void>;
}

interface Line {
  readonly client: Socket;
  readonly server: Socket;
  lostBytes: boolean;
  /** What waits on its way to the server, in order. */
  delayed: Promise<void>;
}

/** Starts a proxy on loopback before a server on a port of loopback. */
export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const lines = new Set<Line>();
  let delayMs = 0;
  let waiting = 0;
  let dropping = false;
  let lost = 0;
  let refusing = false;

  const open = (client: Socket): void => {
    if (refusing) {
      client.on("error", () => {});
      client.resetAndDestroy();
      return;
    }
    const server = connect({ host: "127.0.0.1", port: targetPort });
    const line: Line = { client, server, lostBytes: false, delayed: Promise.resolve() };
    lines.add(line);
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      socket.on("error", () => end(line));
    }
    client.on("data", (bytes) => {
      waiting += 1;
      delayed(line, delayMs, () => {
        waiting -= 1;
        server.write(bytes);
      });
    });
    client.on("close", () => delayed(line, delayMs, () => server.end()));
    server.on("data", (bytes) => {
      if (!dropping) {
        client.write(bytes);
        return;
      }
      line.lostBytes = true;
      lost += 1;
    });
    server.on("close", () => {
      client.end();
      lines.delete(line);
    });
  };
  const end = (line: Line): void => {
    lines.delete(line);
    for (const socket of [line.client, line.server]) if (!socket.destroyed) socket.resetAndDestroy();
  };
  const dropReplies = (drop: boolean): void => {
    dropping = drop;
    if (!drop) for (const line of lines) if (line.lostBytes) end(line);
  };

  const listener = createServer(open);
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return {
    port: (listener.address() as AddressInfo).port,
    delay(ms) {
      delayMs = ms;
    },
    waiting: () => waiting,
    dropReplies,
    lost: () => lost,
    cut() {
      for (const line of lines) end(line);
    },
    refuse(refuse) {
      refusing = refuse;
    },
    restore() {
      delayMs = 0;
      refusing = false;
      dropReplies(false);
    },
    async close() {
      for (const line of lines) end(line);
      const closed = once(listener, "close");
      listener.close();
      await closed;
    },
  };
}

// Behind what was sent before, also when that had to wait longer.
function delayed(line: Line, ms: number, step: () => void): void {
  const due = ms > 0 ? sleep(ms, undefined, { ref: false }) : undefined;
  const before = line.delayed;
  line.delayed = (async () => {
    await before;
    await due;
    if (!line.server.destroyed) step();
  })();
}
