import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

// Below those that the system gives to connections: while a node is down, nothing else gets its port.
const [least, most] = [20_000, 32_000];

/** A port of loopback that nobody listens on, for a server that comes back to it. */
export async function lastingPort() {
  for (;;) {
    const port = randomInt(least, most);
    const server = createServer();
    try {
      server.listen(port, "127.0.0.1");
      await once(server, "listening");
    } catch {
      continue;
    }
    server.close();
    await once(server, "close");
    return port;
  }
}
