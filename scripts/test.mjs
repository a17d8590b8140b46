// npm test [-- jest arguments]: builds everything, which also checks the types of the tests, then runs jest. Where the arguments name
// packages or examples, it builds these and what their tests need: another one may be broken meanwhile.
import { ensureReady, root, runScript } from "./setup.mjs";
import { runNode } from "./run-node.mjs";
import { projectsFor } from "./test-projects.mjs";

runScript(() => {
  const args = process.argv.slice(2);
  ensureReady({ project: projectsFor(args, root) });
  // More young objects: a twentieth of the processors' time was their collection.
  const memory = "--max-semi-space-size=64";
  const flags = ["--experimental-vm-modules", "--disable-warning=ExperimentalWarning", memory];
  runNode([...flags, "node_modules/jest/bin/jest.js", ...args], { cwd: root });
});
