import { execFile } from "node:child_process";

/**
 * The payouts that wait for an operator's decision, for an alert: `{ key,
 * state, fence, reason }` and more of each. `flags` say where the tables are,
 * such as `--schema`, if the platform does.
 */
export async function heldPayouts(
  storeUrl: string,
  ...flags: string[]
): Promise<unknown[]> {
  // --no: npx is not to look for a command of this name anywhere else.
  const args = ["--no", "countersign", "keys", "held", "--json", ...flags];
  const env = { ...process.env, STORE_URL: storeUrl };
  const stdout = await new Promise<string>((resolve, reject) => {
    execFile("npx", args, { env }, (error, out) => {
      // It ends with 1 when a payout waits.
      if (error === null || (error.code === 1 && out !== "")) resolve(out);
      else reject(error);
    });
  });
  const lines = stdout.split("\n").filter((line) => line !== "");
  return lines.map((line): unknown => JSON.parse(line));
}
