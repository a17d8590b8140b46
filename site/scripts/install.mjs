// The dependencies of this folder, which nothing needs but its own tasks and the checks of pages.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { isInstallCurrent, npmCommand, SetupError } from "../../scripts/setup.mjs";

const folder = fileURLToPath(new URL("..", import.meta.url));

/** Installs them once for a lock file. Throws a SetupError. */
export function ensureSiteInstalled() {
  if (isInstallCurrent(folder)) return;
  const { file, args, shell } = npmCommand(process.env, process.platform, ["ci"]);
  const { status } = spawnSync(file, args, { cwd: folder, stdio: ["ignore", 2, 2], shell });
  if (status !== 0) throw new SetupError("npm ci failed in site: see its output above");
}
