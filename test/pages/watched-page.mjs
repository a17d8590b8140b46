// What the tests of all pages do: by keyboard, by axe, on a telephone, with nothing on the console and no secret anywhere.
import assert from "node:assert/strict";
import { axe, seriousViolations, telephone } from "../../site/scripts/browser.mjs";

/** A number that no row has. */
export const missing = 99_999_999;

/**
 * Opens the page of a service, { url, pageUrl }, and watches what it says and asks. `home` is its first view, `stream` the path of its
 * stream, and `missingPath` the one that is asked for what is not there.
 */
export async function openPage(browser, { service, secrets, home, stream, missingPath }, options = {}) {
  const context = await browser.newContext({ colorScheme: "light", reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  const problems = [];
  page.on("console", (message) => {
    // The browser says of every 404 that there was one; what is not there is asked for once.
    if (message.location().url.endsWith(missingPath)) return;
    if (["error", "warning"].includes(message.type())) problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(`${service.url}/`)) problems.push(`asks elsewhere: ${request.url()}`);
  });
  page.on("response", async (response) => {
    // The stream has no end; the test of the API reads it.
    if (response.url().endsWith(stream)) return;
    const text = await response.text().catch(() => "");
    for (const secret of secrets)
      if (text.includes(secret)) problems.push(`secret in the answer of ${response.url()}`);
  });
  await page.goto(service.pageUrl);
  await page.locator(".live", { hasText: "live" }).waitFor();
  assert.equal(new URL(page.url()).hash, home, "the token stays in the address");
  return { context, page, problems };
}

export async function show(page, view) {
  await page.evaluate((hash) => (location.hash = hash), view);
  await page.waitForTimeout(500);
}

/** Presses Tab until an element of this name has the focus. */
export async function tabTo(page, matches) {
  for (let presses = 0; presses < 300; presses += 1) {
    await page.keyboard.press("Tab");
    if (matches(await nameOfFocus(page))) return;
  }
  assert.fail(`no way by keyboard to ${matches}`);
}

export function nameOfFocus(page) {
  return page.evaluate(() => {
    const element = document.activeElement;
    const label =
      element.getAttribute("aria-label") ?? element.labels?.[0]?.innerText ?? element.innerText ?? "";
    return label.trim().replaceAll(/\s+/g, " ");
  });
}

export async function noSecretShown(page, secrets) {
  const shown = await page.evaluate(() => {
    const fields = [...document.querySelectorAll("input, textarea")].map(({ value }) => value);
    return [document.documentElement.outerHTML, ...fields, JSON.stringify(localStorage)].join("\n");
  });
  for (const secret of secrets) assert.ok(!shown.includes(secret), "a secret stands in the document");
}

/** Each view in light and dark; axe stays in the page. */
export async function byAxe(page, views) {
  await page.evaluate(axe);
  for (const view of views) {
    await show(page, view);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(await seriousViolations(page, "body"), [], `axe, ${view}, ${colorScheme}`);
    }
  }
}

/** Behind {@link byAxe}. */
export async function onTelephone(page, views) {
  const before = page.viewportSize();
  await page.setViewportSize(telephone);
  for (const view of views) {
    await show(page, view);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= telephone.width, `${view} is ${width} px wide on a telephone`);
    assert.deepEqual(await seriousViolations(page, "body"), [], `axe, ${view}, telephone`);
  }
  await page.setViewportSize(before);
}

/** Without a token the page asks for it, under this heading. */
export async function withoutToken(browser, service, heading) {
  const page = await browser.newPage();
  await page.goto(service.url);
  await page.getByRole("heading", { name: heading }).waitFor();
  await page.evaluate(axe);
  assert.deepEqual(await seriousViolations(page, "body"), []);
  await page.getByLabel("Token").fill(service.pageUrl);
  await page.keyboard.press("Enter");
  await page.locator(".live", { hasText: "live" }).waitFor();
  await page.close();
}
