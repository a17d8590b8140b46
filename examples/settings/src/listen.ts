import { createServer, type AddressInfo, type Server } from "node:net";
import { reasonOf, SettingError } from "./setting-error.ts";

interface Place {
  readonly host: string;
  readonly port: number;
}

/** Resolves when the server listens. Throws a SettingError that names PORT or HOST; `remedy` ends one about a port in use. */
export function listen(server: Server, { host, port }: Place, remedy = ""): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once("error", (error) => reject(listenError(error, { host, port }, remedy)));
    server.listen({ host, port }, () => {
      const bound = server.address();
      if (bound === null || typeof bound === "string") throw new Error("the server listens on no port");
      resolve(bound);
    });
  });
}

/** Throws a SettingError when `port` of 127.0.0.1 cannot be listened on; it says how `command` is given another one. */
export async function assertFreePort(port: number, command: string): Promise<void> {
  const other = port === 65_535 ? port - 1 : port + 1;
  const probe = createServer();
  await listen(probe, { host: "127.0.0.1", port }, `\nTry PORT=${other} ${command}`);
  await new Promise((resolve) => {
    probe.close(resolve);
  });
}

function listenError(error: NodeJS.ErrnoException, { host, port }: Place, remedy: string): SettingError {
  if (error.code === "EADDRINUSE") {
    return new SettingError("PORT", `a free port, ${port} is in use on ${host}${remedy}`);
  }
  if (error.code === "EACCES") return new SettingError("PORT", `a port that this user may open, not ${port}`);
  return new SettingError("HOST", `an address of this machine (${reasonOf(error)})`, host);
}
