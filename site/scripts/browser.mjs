// The browser that looks at pages, of the documentation and of the packages.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

/** The script of axe, which a page evaluates before {@link seriousViolations}. */
export const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const telephone = { width: 390, height: 844 };

export function launchBrowser() {
  return chromium.launch({ executablePath: chromiumPath(), args: ["--no-sandbox"] });
}

/** The page's script has taken over what was rendered: from here on it is as its readers have it. */
export async function hydrated(page) {
  await page.waitForFunction(() => document.querySelector("#app")?.__vue_app__ !== undefined);
}

/** What axe calls serious or critical within a place of a page, by all its rules or as these options of its say. */
export function seriousViolations(page, place, options = {}) {
  return page.evaluate(
    async ([within, asked]) => {
      const { violations } = await globalThis.axe.run(within, {
        ...asked,
        resultTypes: ["violations"],
        preload: false,
      });
      return violations
        .filter(({ impact }) => impact === "serious" || impact === "critical")
        .map(
          ({ id, nodes }) =>
            `${id}: ${nodes
              .slice(0, 3)
              .map(({ html }) => html.slice(0, 160))
              .join(" | ")}`,
        );
    },
    [place, options],
  );
}

/** CHROMIUM, or the first browser of these names on the path. */
function chromiumPath() {
  if (process.env["CHROMIUM"]) return process.env["CHROMIUM"];
  const finder = process.platform === "win32" ? "where" : "which";
  // The first has no windows to keep, and needs half of the processor's time.
  for (const name of ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome"]) {
    const { status, stdout } = spawnSync(finder, [name], { encoding: "utf8" });
    if (status === 0) return stdout.trim().split("\n")[0];
  }
  throw new Error("no Chromium: install it, or set CHROMIUM to its path");
}
