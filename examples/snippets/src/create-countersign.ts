import { spawnSync } from "node:child_process";

/**
 * Writes a platform to try something on, in a folder that is not there yet;
 * whether it was written.
 */
export function writePlatform(folder: string): boolean {
  const choices = ["--framework", "fastify", "--store", "postgres"];
  // After `--` the flags are the command's, not npm's.
  const command = ["create", "countersign@latest", folder, "--", ...choices];
  return spawnSync("npm", command, { stdio: "inherit" }).status === 0;
}
