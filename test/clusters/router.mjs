// A line on loopback that leads each new connection to some node that takes writes, as a proxy or a driver with several hosts does.
import { once } from "node:events";
import { connect, createServer } from "node:net";

/** `portOf()` gives the port for the next connection; undefined while no node takes writes. */
export async function startRouter(portOf) {
  const sockets = new Set();
  const listener = createServer((client) => {
    const port = portOf();
    client.on("error", () => {});
    if (port === undefined) {
      client.resetAndDestroy();
      return;
    }
    const server = connect({ host: "127.0.0.1", port });
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ]) {
      socket.setNoDelay(true);
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return {
    port: listener.address().port,
    /** Cuts one line, if there is any. */
    cut(random) {
      if (sockets.size === 0) return false;
      random.pick([...sockets]).resetAndDestroy();
      return true;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      listener.close();
      await once(listener, "close");
    },
  };
}
