// What pages do by their own scripts: tabs, the filter of the codes, the list of pages that follows. And that nothing is lost without them.
import { hydrated } from "./browser.mjs";

const cases = {
  "the tabs of the quick start": async (page, home) => {
    await open(page, `${home}guide/quick-start.html`);
    const shown = () => page.locator("[role=tabpanel]:visible").evaluateAll((all) => all.map(({ id }) => id));
    const steps = [await shown()];
    await page.getByRole("tab", { name: "By hand" }).click();
    steps.push(await shown());
    await page.keyboard.press("ArrowLeft");
    steps.push(await shown());
    await page.locator(".vp-doc a[href='#by-hand']").first().click();
    steps.push(await shown());
    await open(page, `${home}guide/quick-start.html#_4-a-payout`);
    steps.push(await shown());
    return ["generate", "by-hand", "generate", "by-hand", "by-hand"].every(
      (name, index) => steps[index].join() === `panel-${name}`,
    );
  },
  "the filter of the codes": async (page, home) => {
    await open(page, `${home}reference/codes.html`);
    const rows = page.locator(".row-filter + table tbody tr:visible");
    const all = await rows.count();
    await page.getByLabel("Status").selectOption("409");
    const conflicts = await rows.count();
    await page.getByLabel("Package").selectOption("ip-allowlist");
    const none = await rows.count();
    await page.getByLabel("Status").selectOption("");
    const ofPackage = await rows.count();
    await page.getByLabel("Text").fill("TRUST-PROXY");
    const found = await rows.locator("td:first-child").allTextContents();
    return all > 150 && conflicts === 2 && none === 0 && ofPackage > 3 && found[0]?.startsWith("trust-proxy");
  },
  "the list of pages": async (page, home) => {
    await open(page, `${home}reference/packages/webhooks.html`);
    const marked = page.locator(".VPSidebar a[aria-current=page]");
    await marked.waitFor();
    if ((await marked.textContent()) !== "webhooks" || !(await isInFrame(marked))) return false;
    await page.locator(".VPNavBarMenu a", { hasText: "Quick start" }).click();
    await page.locator(".VPSidebar a[aria-current=page]", { hasText: "Quick start" }).waitFor();
    return (await marked.count()) === 1 && isInFrame(marked);
  },
};

/** What of this fails. */
export async function behaviourProblems(browser, home) {
  const problems = [];
  for (const [name, holds] of Object.entries(cases)) {
    const page = await browser.newPage();
    if (!(await holds(page, home))) problems.push(`${name}: does not do what it should`);
    await page.close();
  }
  const plain = await browser.newPage({ javaScriptEnabled: false });
  await plain.goto(`${home}guide/quick-start.html`);
  for (const title of ["Generate", "By hand"])
    if (!(await plain.locator("h2", { hasText: title }).isVisible()))
      problems.push(`no ${title} without scripts`);
  await plain.goto(`${home}reference/codes.html`);
  if (await plain.locator(".row-filter").isVisible()) problems.push("a filter that does nothing");
  if (!(await plain.locator(".row-filter + table").isVisible()))
    problems.push("no table of codes without scripts");
  await plain.close();
  return problems;
}

async function open(page, address) {
  await page.goto(address);
  await hydrated(page);
}

function isInFrame(link) {
  return link.evaluate((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return top >= 0 && bottom <= window.innerHeight;
  });
}
