import type { RequestListener } from "node:http";
import { afterTest } from "../runs/after-test.ts";
import { close, listen } from "./http-client.ts";

/** Serves on this machine until the test has ended. The URL has no slash at its end. */
export async function served(listener: RequestListener): Promise<string> {
  const { server, port } = await listen(listener);
  afterTest(() => close(server));
  return `http://127.0.0.1:${port}`;
}
