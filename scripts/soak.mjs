// npm run soak [-- --seconds 300]: some processes on each store, in each mode, under kills, stops, duplicates and replays; test/soak/soak.mjs.
import { ensureReady, root, runScript } from "./setup.mjs";
import { runNode } from "./run-node.mjs";

runScript(() => {
  ensureReady();
  runNode(["test/soak/soak.mjs", ...process.argv.slice(2)], { cwd: root });
});
