import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** The payouts that wait for an operator's decision, for an alert: `{ key, state, fence, reason }` and more of each. */
export async function heldPayouts(storeUrl: string): Promise<unknown[]> {
  // --no: npx is not to look for a command of this name anywhere else.
  const { stdout } = await run("npx", ["--no", "countersign", "keys", "held", "--json"], {
    env: { ...process.env, STORE_URL: storeUrl },
  });
  const lines = stdout.split("\n").filter((line) => line !== "");
  return lines.map((line): unknown => JSON.parse(line));
}
