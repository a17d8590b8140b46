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
// What the browser says of the endpoint and of the amount that are refused here.
const refused = "console: Failed to load resource: the server responded with a status of 400 (Bad Request)";
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
    await registers(watched.page, scene);
    await byKeyboard(watched.page, scene);
    await editsAndFinds(watched.page, scene);
    await sendIsInView(watched.page);
    await byAxe(watched.page, [...views, ...details, `#/deliveries/${missing}`]);
    await onTelephone(watched.page, [...views, ...details]);
    await withManyDeliveries(watched.page, scene);
    await watched.page.waitForTimeout(200);
    assert.deepEqual(watched.problems, [refused, refused], "console, requests to elsewhere, secrets");
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

/** The form says at its field what is wrong; the command beside it is shown without what is secret. */
async function registers(page, { endpoint, secrets }) {
  await page.getByText("No webhook endpoint is registered").waitFor();
  const form = page.getByRole("form", { name: "Register an endpoint" });
  const { url, username, password, secret } = endpoint();
  await form.getByLabel("URL").fill(url);
  await form.getByLabel("User").fill(`${username}:`);
  await form.getByLabel("Password").fill(password);
  await form.getByLabel("Secret").fill(secret);
  const command = form.getByRole("region", { name: "The same as a command" });
  await command.getByText(`"auth_username":"${username}:"`).waitFor();
  const shown = await page.evaluate(() => document.documentElement.outerHTML);
  for (const hidden of secrets) assert.ok(!shown.includes(hidden), "a secret stands in the command");
  await tabTo(page, (name) => name === "Register");
  await page.keyboard.press("Enter");
  await form.locator("label", { hasText: "User" }).getByText("username holds a colon").waitFor();
  assert.equal(await form.locator('[aria-invalid="true"]').count(), 1);
  await form.getByLabel("User").fill(username);
  await page.keyboard.press("Enter");
  await page.getByText("Nothing was sent yet").waitFor();
  await noSecretShown(page, secrets);
}

/** Sends a payout, opens a delivery and sends it again, with no mouse. */
async function byKeyboard(page, { sandbox, secrets }) {
  sandbox.changeBuyerStatus("buyer-1", "ACTIVE");
  await page.getByRole("link", { name: /#1.*buyer\.status_changed.*delivered/ }).waitFor();

  await tabTo(page, (name) => name === "Payouts");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Send a payout" }).waitFor();
  await tabTo(page, (name) => name.startsWith("As it should be"));
  await page.keyboard.press("ArrowDown");
  await tabTo(page, (name) => name === "Send");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Payout #1" }).waitFor();
  await page.getByText("401: not known: no unspoilt payout got 2xx there before").waitFor();
  await page.getByText('"@method": POST').waitFor();
  await tabTo(page, (name) => name === "How it is sent");
  await page.keyboard.press("Home");
  await tabTo(page, (name) => name === "Send this way");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Payout #2" }).waitFor();
  await page.getByText("200: as expected").waitFor();

  await tabTo(page, (name) => name === "Deliveries");
  await page.keyboard.press("Enter");
  await tabTo(page, (name) => name.startsWith("#1"));
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Delivery #1" }).waitFor();
  await tabTo(page, (name) => name === "Send the same again");
  await page.keyboard.press("Enter");
  await page.locator(".attempt").nth(1).waitFor();
  await tabTo(page, (name) => name === "Send spoilt");
  await page.keyboard.press("Enter");
  await page.locator(".attempt", { hasText: "Body changed after signing" }).waitFor();
  for (const attempt of await page.locator(".attempt > summary").all()) await attempt.press("Enter");
  await page.getByText("Body of the answer").first().waitFor();
  await noSecretShown(page, secrets);

  await tabTo(page, (name) => name === "Simulate");
  await page.keyboard.press("Enter");
  await tabTo(page, (name) => name === "buyer-1: SUSPENDED");
  await page.keyboard.press("Enter");
  await page.getByText("done, and an event was sent").waitFor();
  await tabTo(page, (name) => name === "its deliveries");
  assert.equal(sandbox.buyerStatus("buyer-1"), "SUSPENDED");
  await page.locator("#dock summary").press("Enter");
  await page.getByText(`curl ${sandbox.url}/sandbox/buyers/buyer-1/status -H`).waitFor();
  await noSecretShown(page, secrets);
}

/** From an event to its delivery; the same with other events; a payout with another amount. */
async function editsAndFinds(page, { sandbox }) {
  const found = page.locator(".list .rows li");
  const only = page.locator(".list .rows li:only-child");
  await page.getByRole("link", { name: "its deliveries" }).press("Enter");
  await only.getByText("#2").waitFor();
  const [eventId] = sandbox.deliveries.list({ limit: 1 })[0].eventIds;
  assert.equal(await page.getByLabel("Search").inputValue(), eventId);
  await page.getByLabel("Search").fill("no such");
  await page.getByText("No delivery is found.").waitFor();
  await page.getByLabel("Search").fill("");
  await found.nth(1).waitFor();

  await show(page, "#/deliveries/2");
  await page.getByText(/^{\n {2}"webhook_id": "/).waitFor();
  await page.getByText("Edit and send").press("Enter");
  const events = page.getByLabel("Events (JSON)");
  const text = await events.inputValue();
  await events.fill("[");
  await page.getByRole("button", { name: "Send as new events" }).press("Enter");
  await page.locator("label", { hasText: "JSON is expected." }).waitFor();
  await events.fill(text.replace("buyer-1", "buyer-edited"));
  await page.getByRole("button", { name: "Send as new events" }).press("Enter");
  await page.getByText("sent as new events").waitFor();
  await page.getByLabel("Search").fill("buyer-edited");
  await only.getByText("#3").waitFor();
  await page.getByLabel("Search").fill("");

  await show(page, "#/payouts/2");
  await page.getByRole("button", { name: "Edit and send" }).press("Enter");
  const amount = page.getByLabel("Amount (JSON)");
  await page.locator("[name=amount]:focus").waitFor();
  await amount.fill("12.50 EUR");
  await page.getByRole("button", { name: "Send", exact: true }).press("Enter");
  await page.locator("label", { hasText: "amount: must be" }).waitFor();
  await amount.fill('{"value":12.50}');
  await page.getByRole("button", { name: "Send", exact: true }).press("Enter");
  await page.getByRole("heading", { name: "Payout #3" }).waitFor();
  await page.locator(".detail").getByText('"value": 12.50').waitFor();
  await page.getByText("200: as expected").waitFor();
  await page.getByLabel("Search").fill("401");
  await only.getByText("#1").waitFor();
  await page.getByLabel("Search").fill("");
}

/** On the usual desks and on a telephone, with all options open and the last call at the foot of the page. */
async function sendIsInView(page) {
  const before = page.viewportSize();
  for (const size of [{ width: 1440, height: 900 }, { width: 1024, height: 700 }, telephone]) {
    await page.setViewportSize(size);
    await show(page, "#/payouts");
    await page
      .locator(".composer > details")
      .evaluateAll((all) => all.forEach((options) => options.setAttribute("open", "")));
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
  await page.getByRole("button", { name: "Send spoilt" }).press("Enter");
  await page.getByText("404: not known: unspoilt it got 404").waitFor();
  await page.locator(".attempt", { hasText: "not known" }).locator(".badge.doubt").waitFor();
  assert.equal(await page.locator(".detail .badge.good, .dock .badge.good").count(), 0);

  await show(page, "#/payouts");
  const endpoint = page.getByLabel("Payout endpoint");
  const right = await endpoint.inputValue();
  await endpoint.fill(right.replace("/api/v1/transaction", "/refuses/everything"));
  await page.getByText("--expired").click();
  await page.getByRole("button", { name: "Send", exact: true }).press("Enter");
  await page.getByText("401: not known: no unspoilt payout got 2xx there before").waitFor();
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
      sent: ["As it should be", "Body changed after signing"],
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

async function picture(browser, scene, { name, colorScheme, viewport, view, sent = [] }) {
  const { page, context } = await openPage(browser, watching(scene), { colorScheme, viewport });
  await show(page, view);
  for (const [index, what] of sent.entries()) {
    await page.locator(".choice", { hasText: what }).click();
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByRole("heading", { name: `Payout #${index + 1}` }).waitFor();
    await page.locator(".list").evaluate((list) => list.scrollTo(0, 0));
  }
  await page.waitForTimeout(400);
  await writePicture(`${pictures}sandbox-${name}.png`, page);
  await context.close();
}
