// npm run release:dry: a whole release against a registry of its own on loopback, and projects that install from it by name.
import { watchParent } from "./run-node.mjs";
import { ensureReady, runScript } from "./setup.mjs";

runScript(async () => {
  ensureReady({ build: false });
  watchParent(() => process.kill(process.pid, "SIGTERM"));
  const { dryRun } = await import("../test/release/dry-run.mjs");
  await dryRun();
});
