// npm run pages:check [-- --pictures] [sandbox …]: the pages that packages serve, in headless Chromium. With --pictures the pictures in
// docs/pictures are made anew.
import { parseArgs } from "node:util";
import { ensureReady, runScript, SetupError } from "../../scripts/setup.mjs";
import { ensureSiteInstalled } from "../../site/scripts/install.mjs";

// What is spoilt on purpose is refused.
process.env["COUNTERSIGN_STDERR"] ??= "off";
const known = ["sandbox", "inspector"];
const { values, positionals } = parseArgs({
  options: { pictures: { type: "boolean", default: false } },
  allowPositionals: true,
});

runScript(async () => {
  ensureReady();
  ensureSiteInstalled();
  const { launchBrowser } = await import("../../site/scripts/browser.mjs");
  const browser = await launchBrowser();
  try {
    for (const name of positionals.length === 0 ? known : positionals) {
      if (!known.includes(name)) throw new SetupError(`${name} is none of ${known.join(", ")}`);
      const { checkPage, takePictures } = await import(`./${name}-page.mjs`);
      await (values.pictures ? takePictures(browser) : checkPage(browser));
    }
  } finally {
    await browser.close();
  }
});
