// The page of an inspector, as somebody has it: by keyboard alone, by axe in light and dark, on a telephone, with 10,000 requests, with
// nothing on the console, and with no secret in any answer or in the document.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { telephone } from "../../site/scripts/browser.mjs";
import { writePicture } from "../../site/scripts/picture.mjs";
import { startScene } from "./inspector-scene.mjs";
import {
  byAxe,
  missing,
  nameOfFocus,
  noSecretShown,
  onTelephone,
  openPage,
  show,
  tabTo,
  withoutToken,
} from "./watched-page.mjs";

const many = 10_000;
const views = ["#/requests", "#/keys"];
const details = ["#/requests/1", "#/requests/2"];
// Of a page with fifty rows and one request in full.
const largestDocument = 2_000;

const watching = ({ inspector, secrets }) => ({
  service: inspector,
  secrets,
  home: "#/requests",
  stream: "/inspector/stream",
  missingPath: `/inspector/requests/${missing}`,
});

export async function checkPage(browser) {
  const scene = await startScene({ kept: many });
  const watched = await openPage(browser, watching(scene));
  try {
    await whileEmpty(watched.page);
    await byKeyboard(watched.page, scene);
    await withSecrets(watched.page, scene);
    await byAxe(watched.page, [...views, ...details, `#/requests/${missing}`]);
    await onTelephone(watched.page, [...views, ...details]);
    await withManyRequests(watched.page, scene);
    await watched.page.waitForTimeout(200);
    assert.deepEqual(watched.problems, [], "console, requests to elsewhere, secrets");
    await withoutToken(browser, scene.inspector, "Open the address that the inspector gave");
  } finally {
    await watched.context.close();
    await scene.close();
  }
  console.log(
    `inspector page: keyboard, axe in light and dark, ${telephone.width} px, ${many} requests, console, secrets`,
  );
}

/** What is not there yet says what to do. */
async function whileEmpty(page) {
  await page.getByText("No request was seen yet").waitFor();
  await page.getByText("countersign payout --url").waitFor();
  await page.getByText("Choose a request").waitFor();
  await show(page, "#/keys");
  await page.getByText("No signature was seen yet").waitFor();
  await show(page, "#/requests");
}

/** Finds out why a request was refused, and what holds a payment, with no mouse. */
async function byKeyboard(page, { inspector, baseOf, ...scene }) {
  assert.equal(await scene.pays("op-1"), 200);
  assert.equal(await scene.signsWithPrefix(), 401);
  await page.getByRole("link", { name: /#1 POST \/api\/v1\/transaction passed 200/ }).waitFor();
  await tabTo(page, (name) => name.startsWith("#2"));
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Request #2" }).waitFor();
  const told = page.locator(".told").first();
  await told.getByText('the signature fits with "/payments/api/v1/transaction"').waitFor();
  const verdict = page.locator(".verdicts details[open]");
  await verdict.getByText("signature-mismatch", { exact: true }).waitFor();
  const id = await verdict.locator("code").first().textContent();
  assert.match(id, /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
  await page.getByText(`curl '${inspector.url}/inspector/verdicts/${id}' -H`).waitFor();
  await page
    .getByText(/^\d\.\d s before it was checked$/)
    .first()
    .waitFor();

  await sameByCurl(page, inspector);

  // What the signer has signed, beside what is expected.
  await tabTo(page, (name) => name.startsWith("The signer's base"));
  await page.keyboard.insertText(baseOf({ prefix: "/payments" }).replace(/;nonce="[^"]*"/, ""));
  await page.getByText("They differ first in line 2, at character 11").waitFor();
  await page.locator(".base .differs", { hasText: "/payments/api/v1/transaction" }).waitFor();

  await stepsOfFocus(page, scene);

  assert.equal(await scene.isHeld("op-2"), 504);
  assert.equal(await scene.isHeld("op-2"), 503);
  await tabTo(page, (name) => name.startsWith("#6"));
  await page.keyboard.press("Enter");
  await page.getByText(/decide by countersign keys resolve: .*late-op-2.* is held/).waitFor();
  await tabTo(page, (name) => name === "Keys");
  await page.keyboard.press("Enter");
  await page
    .getByRole("row", { name: /service-2026-08/ })
    .first()
    .waitFor();
  await tabTo(page, (name) => name === "As an API call");
  await page.keyboard.press("Enter");
  await tabTo(page, (name) => name === "Copy: Keys");
  await page.keyboard.press("Enter");
  await page
    .getByText(/^(Copied|Not allowed)$/)
    .first()
    .waitFor();
}

/** The line that the page shows says the same as the page. */
async function sameByCurl(page, { pageUrl }) {
  const told = /with a prefix\. Where a proxy takes this prefix off/;
  const curl = await page.locator(".detail .lines code").textContent();
  const [, url, header] = /^curl '(\S+)' -H "(\S+): \$COUNTERSIGN_INSPECTOR_TOKEN"$/.exec(curl);
  const token = new URL(pageUrl).hash.slice("#token=".length);
  const answer = await fetch(url, { headers: { [header]: token } });
  assert.match(await answer.text(), told);
}

/** A list that changes leaves the focus where it is. */
async function stepsOfFocus(page, scene) {
  await tabTo(page, (name) => name.startsWith("#2"));
  await scene.spoilsBody();
  await scene.signsWithOtherKey();
  await page.getByRole("link", { name: /#4 POST/ }).waitFor();
  await page.waitForTimeout(600);
  assert.match(await nameOfFocus(page), /^#2 /, "the focus moves while the list changes");
  await page.keyboard.press("Shift+Tab");
  assert.match(await nameOfFocus(page), /^#3 /);
}

/** Credentials that senders put everywhere are nowhere. */
async function withSecrets(page, { secrets, ...scene }) {
  assert.equal(await scene.webhook(), 200);
  assert.equal(await scene.webhookWith({ tamper: "password" }), 401);
  assert.equal(await scene.webhookWith({ tamper: "body" }), 401);
  assert.equal(await scene.webhookWith({ secret: "of-somebody-else" }), 401);
  await show(page, "#/requests");
  const rows = page.getByRole("link", { name: /POST \/hooks\/4f2a91/ });
  await rows.nth(3).waitFor();
  for (const [number, told] of [
    [0, "Compare the secrets of both sides"],
    [2, "Compare the passwords of both sides"],
  ]) {
    await rows.nth(number).click();
    await page.locator(".told", { hasText: told }).waitFor();
    for (const closed of await page.locator(".detail details:not([open]) > summary").all())
      await closed.press("Enter");
    await noSecretShown(page, secrets);
  }
  await rows.nth(3).click();
  await page.getByText("nothing is to be changed").waitFor();
  // Control characters of the body, each with a sign of its own.
  for (const sign of [String.raw`\r`, String.raw`\n`, String.raw`\t`, String.raw`\u{202e}`])
    await page.locator(".sign", { hasText: sign }).first().waitFor();
  await noSecretShown(page, secrets);
  // What is no UTF-8 is shown byte by byte.
  assert.equal(await scene.webhookWith({ body: Buffer.from([0x7b, 0xff, 0x00, 0x7d]) }), 400);
  await page.getByRole("link", { name: /refused 400/ }).click();
  await page.getByText("000000 7b ff 00 7d").waitFor();
  await show(page, "#/keys");
  await noSecretShown(page, secrets);
}

async function withManyRequests(page, scene) {
  await show(page, "#/requests");
  const newest = await page.locator(".rows .number").first().textContent();
  await scene.unsigned(many - Number(newest.slice(1)));
  await page.getByText(`1–50 of ${many.toLocaleString("en")}`).waitFor();
  await page.getByRole("link", { name: new RegExp(`#${many} .*refused 401`) }).waitFor();
  await page.getByLabel("Outcome").selectOption("passed");
  await page.locator(".rows .badge", { hasText: "refused" }).first().waitFor({ state: "hidden" });
  await page.getByLabel("Outcome").selectOption("all outcomes");
  await page.getByText(`1–50 of ${many.toLocaleString("en")}`).waitFor();
  await page.getByRole("button", { name: "Older" }).press("Enter");
  await page.getByText(`51–100 of ${many.toLocaleString("en")}`).waitFor();
  await page.getByRole("link", { name: new RegExp(`#${many - 50} `) }).press("Enter");
  await page.getByRole("heading", { name: `Request #${many - 50}` }).waitFor();
  const size = await page.evaluate(() => document.querySelectorAll("*").length);
  assert.ok(size <= largestDocument, `${size} elements with ${many} requests`);
  assert.equal(await page.locator(".rows li").count(), 50);
  await page.getByRole("button", { name: "Newer" }).press("Enter");
  await page.getByText(`1–50 of ${many.toLocaleString("en")}`).waitFor();
}

const desk = { width: 1200, height: 780 };
const pictures = fileURLToPath(new URL("../../docs/pictures/", import.meta.url));

/** The pictures of the documentation: light, dark, and on a telephone. */
export async function takePictures(browser) {
  mkdirSync(pictures, { recursive: true });
  const scene = await startScene();
  try {
    await scene.pays("op-1");
    await scene.paysTwice("op-2");
    await scene.webhook();
    await scene.isHeld("op-3");
    await scene.spoilsBody();
    await scene.signsWithOtherKey();
    await scene.webhookWith({ secret: "of-somebody-else" });
    await scene.signsWithPrefix();
    await scene.pays("op-1");
    await scene.pays("op-4");
    const shot = { colorScheme: "light", viewport: desk };
    await picture(browser, scene, { ...shot, name: "light", view: "#/requests/9" });
    await picture(browser, scene, {
      ...shot,
      name: "dark",
      colorScheme: "dark",
      view: "#/requests/7",
      base: scene.baseOf({ prefix: "/payments" }),
    });
    await picture(browser, scene, { ...shot, name: "telephone", viewport: telephone, view: "#/requests" });
  } finally {
    await scene.close();
  }
}

async function picture(browser, scene, { name, colorScheme, viewport, view, base }) {
  const { page, context } = await openPage(browser, watching(scene), { colorScheme, viewport });
  await show(page, view);
  if (base !== undefined) {
    await page.getByLabel("The signer's base").fill(base);
    await page.getByLabel("The signer's base").blur();
    await page
      .getByRole("heading", { name: "Signature base" })
      .evaluate((heading) => heading.scrollIntoView());
  }
  await page.waitForTimeout(400);
  await writePicture(`${pictures}inspector-${name}.png`, page);
  await context.close();
}
