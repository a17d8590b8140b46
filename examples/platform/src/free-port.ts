import { createServer } from "node:net";
import { listenError } from "./listen-error.ts";

const host = "127.0.0.1";

/** Throws a SettingError when `port` of 127.0.0.1 cannot be listened on; it says how `command` is given another one. */
export function assertFreePort(port: number, command: string): Promise<void> {
  const other = port === 65_535 ? port - 1 : port + 1;
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", (error) => {
      reject(listenError(error, { host, port }, `: try PORT=${other} ${command}`));
    });
    probe.listen({ port, host }, () => probe.close(() => resolve()));
  });
}
