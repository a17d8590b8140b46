// docs/pictures/dashboard.png: the drawing, as a browser shows it.
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ensureSiteInstalled } from "../../site/scripts/install.mjs";
import { drawDashboard } from "./drawing.mjs";
import { indexedPng } from "./indexed-png.mjs";

const file = fileURLToPath(new URL("../../docs/pictures/dashboard.png", import.meta.url));

/** Takes what drawDashboard() takes. */
export async function takePicture(drawn) {
  ensureSiteInstalled();
  const { launchBrowser } = await import("../../site/scripts/browser.mjs");
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage();
    await page.setContent(drawDashboard(drawn));
    const shot = await page.locator("main").screenshot();
    const { width, height, base64 } = await page.evaluate(pixelsOf, shot.toString("base64"));
    writeFileSync(file, indexedPng({ width, height, rgba: Buffer.from(base64, "base64") }));
  } finally {
    await browser.close();
  }
}

/** In the page, which can read a PNG. */
async function pixelsOf(png) {
  const answer = await fetch(`data:image/png;base64,${png}`);
  const bitmap = await createImageBitmap(await answer.blob());
  const { width, height } = bitmap;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(bitmap, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  const reader = new FileReader();
  reader.readAsDataURL(new Blob([data]));
  await new Promise((resolve) => reader.addEventListener("load", resolve));
  return { width, height, base64: reader.result.split(",")[1] };
}
