// npm test [-- jest arguments]: builds everything, which also checks the types of the tests, then runs jest.
import { ensureReady, root, runScript } from "./setup.mjs";
import { runNode } from "./run-node.mjs";

runScript(() => {
  ensureReady();
  const flags = ["--experimental-vm-modules", "--disable-warning=ExperimentalWarning"];
  runNode([...flags, "node_modules/jest/bin/jest.js", ...process.argv.slice(2)], { cwd: root });
});
