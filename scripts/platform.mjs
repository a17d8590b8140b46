// npm run platform: the example platform alone, configured by environment variables (examples/platform/README.md).
import { ensureReady, runScript } from "./setup.mjs";

runScript(async () => {
  ensureReady({ project: "examples/platform" });
  await import("../examples/platform/dist/main.js");
});
