// docs/pictures/dashboard.png: the drawing, as a browser shows it.
import { fileURLToPath } from "node:url";
import { ensureSiteInstalled } from "../../site/scripts/install.mjs";
import { writePicture } from "../../site/scripts/picture.mjs";
import { drawDashboard } from "./drawing.mjs";

const file = fileURLToPath(new URL("../../docs/pictures/dashboard.png", import.meta.url));

/** Takes what drawDashboard() takes. */
export async function takePicture(drawn) {
  ensureSiteInstalled();
  const { launchBrowser } = await import("../../site/scripts/browser.mjs");
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage();
    await page.setContent(drawDashboard(drawn));
    await writePicture(file, page.locator("main"));
  } finally {
    await browser.close();
  }
}
