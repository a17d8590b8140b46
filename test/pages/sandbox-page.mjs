// The page of a sandbox, as somebody has it: by keyboard alone, by axe in light and dark, on a telephone, with 10,000 deliveries, with
// nothing on the console, and with no secret in any answer or in the document.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { telephone } from "../../site/scripts/browser.mjs";
import { writePicture } from "../../site/scripts/picture.mjs";
import { startScene } from "./sandbox-scene.mjs";
import {
  byAxe,
  missing,
  noSecretShown,
  onTelephone,
  openPage,
  show,
  tabTo,
  withoutToken,
} from "./watched-page.mjs";

const views = ["#/deliveries", "#/payouts", "#/simulate"];
const details = ["#/deliveries/1", "#/payouts/1"];
const many = 10_000;
// Of a page with fifty rows and one delivery in full.
const largestDocument = 2_000;

const watching = ({ sandbox, secrets }) => ({
  service: sandbox,
  secrets,
  home: "#/deliveries",
  stream: "/sandbox/stream",
  missingPath: `/sandbox/deliveries/${missing}`,
});

export async function checkPage(browser) {
  const scene = await startScene();
  const watched = await openPage(browser, watching(scene));
  try {
    await byKeyboard(watched.page, scene);
    await sendIsInView(watched.page);
    await byAxe(watched.page, [...views, ...details, `#/deliveries/${missing}`]);
    await onTelephone(watched.page, [...views, ...details]);
    await withManyDeliveries(watched.page, scene);
    await watched.page.waitForTimeout(200);
    assert.deepEqual(watched.problems, [], "console, requests to elsewhere, secrets");
    await withoutToken(browser, scene.sandbox, "Open the address that the sandbox printed");
  } finally {
    await watched.context.close();
    await scene.close();
  }
  await nothingGreenAtAWrongPath(browser);
  console.log(
    `sandbox page: keyboard, axe in light and dark, ${telephone.width} px, ${many} deliveries, console, secrets`,
  );
}

/** Sends a payout, opens a delivery and sends it again, with no mouse. */
async function byKeyboard(page, { sandbox, register, secrets }) {
  await page.getByText("No webhook endpoint is registered").waitFor();
  register();
  sandbox.changeBuyerStatus("buyer-1", "ACTIVE");
  await page.getByRole("link", { name: /#1.*buyer\.status_changed.*delivered/ }).waitFor();

  await tabTo(page, (name) => name === "Payouts");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Send a payout" }).waitFor();
  await tabTo(page, (name) => name.startsWith("as it should be"));
  await page.keyboard.press("ArrowDown");
  await tabTo(page, (name) => name === "Send");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Payout #1" }).waitFor();
  await page.getByText("401: as expected").waitFor();
  await page.getByText('"@method": POST').waitFor();
  await tabTo(page, (name) => name === "Send again, signed anew");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Payout #2" }).waitFor();
  await page.getByText("200: as expected").waitFor();

  await tabTo(page, (name) => name === "Deliveries");
  await page.keyboard.press("Enter");
  await tabTo(page, (name) => name.startsWith("#1"));
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Delivery #1" }).waitFor();
  await tabTo(page, (name) => name === "Send again, signed anew");
  await page.keyboard.press("Enter");
  await page.locator(".attempt").nth(1).waitFor();
  await tabTo(page, (name) => name === "Spoil");
  await page.keyboard.press("Enter");
  await page.locator(".attempt", { hasText: "body spoilt" }).waitFor();
  for (const attempt of await page.locator(".attempt > summary").all()) await attempt.press("Enter");
  await page.getByText("Body of the answer").first().waitFor();
  await noSecretShown(page, secrets);

  await tabTo(page, (name) => name === "Simulate");
  await page.keyboard.press("Enter");
  await tabTo(page, (name) => name === "buyer-1: SUSPENDED");
  await page.keyboard.press("Enter");
  await page.getByText("done, and an event was sent").waitFor();
  assert.equal(sandbox.buyerStatus("buyer-1"), "SUSPENDED");
  await page.getByText(`curl ${sandbox.url}/sandbox/buyers/buyer-1/status -H`).waitFor();
  await noSecretShown(page, secrets);
}

/** On the usual desks, with the last call at the foot of the page. */
async function sendIsInView(page) {
  const before = page.viewportSize();
  for (const size of [
    { width: 1440, height: 900 },
    { width: 1024, height: 700 },
  ]) {
    await page.setViewportSize(size);
    await show(page, "#/payouts");
    const isInView = await page.getByRole("button", { name: "Send", exact: true }).evaluate((send) => {
      const { left, top, width, height } = send.getBoundingClientRect();
      const shown = document.elementFromPoint(left + width / 2, top + height / 2);
      return send.contains(shown);
    });
    assert.ok(isInView, `Send is hidden at ${size.width} x ${size.height}`);
  }
  await page.setViewportSize(before);
}

/** A path at which nothing is answers 404 to everything, also to what has to be refused. */
async function nothingGreenAtAWrongPath(browser) {
  const scene = await startScene();
  const { page, context } = await openPage(browser, watching(scene));
  scene.register("/hooks/misspelt");
  scene.sandbox.changeBuyerStatus("buyer-1", "ACTIVE");
  await page.getByRole("link", { name: /#1 .*404/ }).waitFor();
  await show(page, "#/deliveries/1");
  await page.getByRole("button", { name: "Spoil", exact: true }).press("Enter");
  await page.getByText("404: refused, as everything was so far").waitFor();
  await page.locator(".attempt .badge.doubt", { hasText: "404" }).waitFor();
  assert.equal(await page.locator(".detail .badge.good, .dock .badge.good").count(), 0);

  await show(page, "#/payouts");
  const endpoint = page.getByLabel("Payout endpoint");
  const right = await endpoint.inputValue();
  await endpoint.fill(right.replace("/api/v1/transaction", "/refuses/everything"));
  await page.getByText("--expired").click();
  await page.getByRole("button", { name: "Send", exact: true }).press("Enter");
  await page.getByText("401: as expected, but no payout was accepted there yet").waitFor();
  assert.equal(await page.locator(".detail .badge.good, .dock .badge.good").count(), 0);
  await context.close();
  await scene.close();
}

async function withManyDeliveries(page, { sandbox }) {
  await show(page, "#/deliveries");
  const sent = sandbox.deliveries.list({ limit: 1 })[0].id;
  // One event is one webhook; all in one transaction each, as they come from a busy day.
  for (let number = sent; number < many; number += 1)
    sandbox.deliveries.notify([{ type: "load.event", data: { number } }]);
  await sandbox.deliveries.idle();
  await page.getByText(`1–50 of ${many.toLocaleString("en")}`).waitFor();
  await page.getByRole("link", { name: new RegExp(`#${many}.*delivered`) }).waitFor();
  const size = await page.evaluate(() => document.querySelectorAll("*").length);
  assert.ok(size <= largestDocument, `${size} elements with ${many} deliveries`);
  assert.equal(await page.locator(".rows li").count(), 50);
  await page.getByRole("button", { name: "Older" }).press("Enter");
  await page.getByText(`51–100 of ${many.toLocaleString("en")}`).waitFor();
  await page.getByRole("link", { name: new RegExp(`#${many - 50} `) }).press("Enter");
  await page.getByRole("heading", { name: `Delivery #${many - 50}` }).waitFor();
  await page.getByRole("button", { name: "Newer" }).press("Enter");
  await page.getByText(`1–50 of ${many.toLocaleString("en")}`).waitFor();
}

const desk = { width: 1200, height: 780 };
const pictures = fileURLToPath(new URL("../../docs/pictures/", import.meta.url));

/** The pictures of the documentation: light, dark, and on a telephone. */
export async function takePictures(browser) {
  mkdirSync(pictures, { recursive: true });
  const scene = await startScene({ answers: (received) => (received % 4 === 0 ? 503 : 200) });
  try {
    scene.register();
    const { sandbox } = scene;
    for (const [id, status] of [
      ["buyer-1", "ACTIVE"],
      ["buyer-2", "ACTIVE"],
      ["buyer-2", "SUSPENDED"],
    ])
      sandbox.changeBuyerStatus(id, status);
    sandbox.changeSellerStatus("seller-1", "ACTIVE");
    for (const id of ["request-1", "request-2"])
      sandbox.createPaymentRequest({ payment_request_id: id, due_date: "2030-01-31" });
    sandbox.remind("request-1");
    sandbox.repay("request-2");
    await sandbox.deliveries.idle();
    await picture(browser, scene, {
      name: "light",
      colorScheme: "light",
      viewport: desk,
      view: "#/deliveries/4",
    });
    await picture(browser, scene, {
      name: "dark",
      colorScheme: "dark",
      viewport: desk,
      view: "#/payouts",
      press: ["--tamper body", "Send"],
    });
    await picture(browser, scene, {
      name: "simulate",
      colorScheme: "light",
      viewport: desk,
      view: "#/simulate",
    });
    await picture(browser, scene, {
      name: "telephone",
      colorScheme: "light",
      viewport: telephone,
      view: "#/deliveries",
    });
  } finally {
    await scene.close();
  }
}

async function picture(browser, scene, { name, colorScheme, viewport, view, press }) {
  const { page, context } = await openPage(browser, watching(scene), { colorScheme, viewport });
  await show(page, view);
  if (press !== undefined) {
    await page.getByText(press[0], { exact: true }).click();
    await page.getByRole("button", { name: press[1], exact: true }).click();
    await page.waitForTimeout(500);
    await page.locator(".list").evaluate((list) => list.scrollTo(0, 0));
  }
  await page.waitForTimeout(400);
  await writePicture(`${pictures}sandbox-${name}.png`, page);
  await context.close();
}
