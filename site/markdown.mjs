// npm run docs:markdown: writes docs/pages, the pages as markdown for the view of the repository.
import { ensureReady, runScript } from "../scripts/setup.mjs";

runScript(async () => {
  ensureReady();
  process.env["COUNTERSIGN_STDERR"] = "off";
  const { writeMarkdown } = await import("./scripts/markdown.mjs");
  await writeMarkdown();
});
