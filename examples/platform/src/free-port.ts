import { createServer } from "node:net";
import { SettingError } from "./setting-error.ts";

/** Throws a SettingError when somebody listens on `port` of 127.0.0.1. */
export function assertFreePort(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", () => {
      reject(new SettingError("PORT", `a free port, ${port} is in use: try PORT=${port + 1} npm start`));
    });
    probe.listen({ port, host: "127.0.0.1" }, () => probe.close(() => resolve()));
  });
}
