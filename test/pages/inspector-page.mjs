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
// Those under one key are one row: of op-2, and of what its handler throws.
const rowsOfMany = (many - 2).toLocaleString("en");
const views = ["#/requests", "#/keys", "#/work", "#/work/main/inbox/open"];
const details = ["#/requests/1", "#/requests/2", "#/requests/8"];
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
    await withExceptions(watched.page, scene);
    await withWork(watched.page, scene);
    await withSecrets(watched.page, scene);
    await byAxe(watched.page, [...views, ...details, `#/requests/${missing}`]);
    await onTelephone(watched.page, [...views, ...details]);
    await opensWhereOneLooks(watched.page);
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
  await show(page, "#/work");
  await page.getByText("No queue has a task yet").waitFor();
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
  const id = await verdict.locator(".copied code").textContent();
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

/** What a handler has thrown, of the newest attempt and of the one before. */
async function withExceptions(page, { secrets, ...scene }) {
  assert.equal(await scene.throws("op-3"), 500);
  assert.equal(await scene.throws("op-3"), 500);
  await show(page, "#/requests/8");
  await page.getByRole("heading", { name: "Exception" }).waitFor();
  const thrown = page.locator(".thrown");
  await thrown.getByText("Error: no connection for the ledger, token [masked]").first().waitFor();
  await thrown.getByText("Caused by Error ECONNREFUSED: connect ECONNREFUSED").first().waitFor();
  await thrown.locator("pre", { hasText: "at bookTransfer (" }).waitFor();
  await page.locator(".detail pre", { hasText: '"seen":"[masked]"' }).waitFor();
  await noSecretShown(page, secrets);
  const attempts = page.locator(".attempts[open]");
  await attempts.getByText("2 attempts").waitFor();
  await attempts.getByRole("link", { name: /^#7/ }).press("Enter");
  await page.getByRole("heading", { name: "Request #7" }).waitFor();
  await attempts.locator('[aria-current="true"]', { hasText: "#7" }).waitFor();
  // Local, with the date, and the same in UTC behind it.
  const time = page.locator(".heading time");
  assert.match(await time.textContent(), /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
  assert.match(await time.getAttribute("title"), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  await page.getByLabel("Search").fill("BROKEN-op-3");
  await page.locator(".rows > li").nth(1).waitFor({ state: "detached" });
  assert.equal(await page.locator(".rows > li").count(), 1);
  await page.getByLabel("Search").fill("nothing like it");
  await page.getByText('No request has "nothing like it" in it').waitFor();
  await page.getByLabel("Search").fill("");
  await page.getByRole("link", { name: /^#1 / }).waitFor();
}

/** What waits and what is dead, with the commands about it. */
async function withWork(page, { secrets, ...scene }) {
  await scene.works();
  await show(page, "#/work");
  await page.getByRole("row", { name: /outcomes main 1 0 2 0/ }).waitFor();
  for (const line of [
    "countersign outcomes retry op-31.funding-1",
    "countersign outcomes discard op-31.funding-1",
    `countersign outcomes retry --id-json '"op 32.funding-1"'`,
  ])
    await page.locator(".tasks code", { hasText: line }).waitFor();
  await page.getByText("the service answered 503, token [masked]").first().waitFor();
  await noSecretShown(page, secrets);
  await page.getByRole("link", { name: "open", exact: true }).press("Enter");
  await page.locator(".tasks .badge", { hasText: "waits" }).waitFor();
  await page.getByRole("link", { name: "inbox" }).press("Enter");
  await page.locator(".tasks .badge", { hasText: "due" }).first().waitFor();
  await page.getByText("As API calls").press("Enter");
  await page.locator(".lines code", { hasText: "countersign inbox resume" }).waitFor();
}

/** On a telephone a request begins at the top of the window, and the way back leads to where the list was. */
async function opensWhereOneLooks(page) {
  const before = page.viewportSize();
  await page.setViewportSize(telephone);
  await show(page, "#/requests");
  const link = page.getByRole("link", { name: /^#1 / });
  await link.scrollIntoViewIfNeeded();
  const left = await page.evaluate(() => scrollY);
  assert.ok(left > 0, "the list fits the window");
  await link.click();
  const heading = page.getByRole("heading", { name: "Request #1" });
  await heading.waitFor();
  await page.waitForFunction(() => scrollY === 0);
  assert.ok((await heading.boundingBox()).y < telephone.height, "the request is out of sight");
  await page.getByRole("link", { name: "All requests" }).click();
  await page.waitForFunction((top) => scrollY === top, left);
  assert.match(await nameOfFocus(page), /^#1 /);
  await page.setViewportSize(before);
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
  await page.getByText(`1–50 of ${rowsOfMany}`).waitFor();
  await page.getByRole("link", { name: new RegExp(`#${many} .*refused 401`) }).waitFor();
  await page.getByLabel("Outcome").selectOption("passed");
  await page.locator(".rows .badge", { hasText: "refused" }).first().waitFor({ state: "hidden" });
  await page.getByLabel("Outcome").selectOption("all outcomes");
  await page.getByText(`1–50 of ${rowsOfMany}`).waitFor();
  await page.getByRole("button", { name: "Older" }).press("Enter");
  await page.getByText(`51–100 of ${rowsOfMany}`).waitFor();
  await page.getByRole("link", { name: new RegExp(`#${many - 50} `) }).press("Enter");
  await page.getByRole("heading", { name: `Request #${many - 50}` }).waitFor();
  const size = await page.evaluate(() => document.querySelectorAll("*").length);
  assert.ok(size <= largestDocument, `${size} elements with ${many} requests`);
  assert.equal(await page.locator(".rows > li").count(), 50);
  await page.getByRole("button", { name: "Newer" }).press("Enter");
  await page.getByText(`1–50 of ${rowsOfMany}`).waitFor();
}

const desk = { width: 1200, height: 780 };
const pictures = fileURLToPath(new URL("../../docs/pictures/", import.meta.url));

/** The pictures of the documentation: light, dark, of work, and on a telephone. */
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
    await scene.works();
    const shot = { colorScheme: "light", viewport: desk };
    await picture(browser, scene, { ...shot, name: "light", view: "#/requests/9" });
    await picture(browser, scene, {
      ...shot,
      name: "dark",
      colorScheme: "dark",
      view: "#/requests/7",
      base: scene.baseOf({ prefix: "/payments" }),
    });
    await picture(browser, scene, { ...shot, name: "work", view: "#/work" });
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
