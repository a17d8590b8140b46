// npm run docs:update: writes again what pages and READMEs repeat of elsewhere, and the drawings of docs/pictures. What a page repeats
// is compared with its source by test/docs/pages.test.ts.
import { ensureReady, runScript } from "../scripts/setup.mjs";

runScript(async () => {
  ensureReady();
  process.env["COUNTERSIGN_STDERR"] = "off";
  const { update } = await import("./scripts/update.mjs");
  await update();
  // Stores of the examples have timers.
  process.exit();
});
