// Looks at every page of a build in headless Chromium, as static files under a path that is not the root: links and anchors, errors on
// the console, requests to elsewhere, axe in light and dark, the width on a telephone; the search; the markdown beside the HTML.
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { availableParallelism } from "node:os";
import path from "node:path";
import { behaviourProblems } from "./behaviour.mjs";
import { axe, hydrated, launchBrowser, seriousViolations, telephone } from "./browser.mjs";
import { contrastProblems, withoutColours } from "./contrast.mjs";
import { homepage, outputFolder } from "./source.mjs";

const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };

export async function checkPages({ base }) {
  const { server, origin } = await serveFiles(base);
  const browser = await launchBrowser();
  const names = readdirSync(outputFolder, { recursive: true, encoding: "utf8" }).map((name) =>
    name.replaceAll(path.sep, "/"),
  );
  const pages = names.filter((name) => name.endsWith(".html")).toSorted();
  const problems = [];
  const seen = { ids: new Map(), links: new Map(), styles: new Set() };
  try {
    const waiting = [...pages];
    // One tab for page after page: a new one compiles all scripts again, which takes longer than the page.
    const look = async () => {
      const context = await browser.newContext({ colorScheme: "light", reducedMotion: "reduce" });
      const page = await context.newPage();
      const told = heardOf(page, `${origin}${base}`);
      for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
        const found = await lookAt(page, { origin, base, name, seen });
        for (const problem of [...told.splice(0), ...found]) problems.push(`${name}: ${problem}`);
      }
    };
    await Promise.all(Array.from({ length: Math.min(4, availableParallelism() + 1) }, look));
    problems.push(...brokenLinks(seen, names));
    problems.push(...(await searchProblems(browser, `${origin}${base}`)));
    problems.push(...(await behaviourProblems(browser, `${origin}${base}`)));
  } finally {
    await browser.close();
    server.closeAllConnections();
    server.close();
  }
  problems.push(...markdownProblems(pages, names), ...previewProblems(pages, names));
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) throw new Error(`${problems.length} problems on ${pages.length} pages`);
  const links = [...seen.links.values()].reduce((sum, { size }) => sum + size, 0);
  console.log(
    `${pages.length} pages: ${links} links, console, axe in light and dark, ${telephone.width} px, search, tabs, filter, menu`,
  );
}

/** What a tab says on its console, throws, and asks elsewhere, as it comes. */
function heardOf(page, home) {
  const problems = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(home) && !request.url().startsWith("data:")) {
      problems.push(`asks elsewhere: ${request.url()}`);
    }
  });
  return problems;
}

async function lookAt(page, { origin, base, name, seen }) {
  const problems = [];
  // What nobody links to is never looked for: an unknown path has this page, with status 404.
  await page.goto(`${origin}${base}${name}`);
  await hydrated(page);
  const { ids, links } = await page.evaluate(() => ({
    ids: [...document.querySelectorAll("[id]")].map(({ id }) => id),
    links: [...document.querySelectorAll("a[href]")].map(({ href }) => href),
  }));
  seen.ids.set(name, new Set(ids));
  const inner = links.filter((href) => href.startsWith(origin)).map((href) => href.slice(origin.length));
  for (const href of inner) if (!href.startsWith(base)) problems.push(`leads out of its base: ${href}`);
  seen.links.set(
    name,
    new Set(inner.filter((href) => href.startsWith(base)).map((href) => href.slice(base.length))),
  );
  const desktop = page.viewportSize();
  await page.setViewportSize(telephone);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  if (width > telephone.width) problems.push(`is ${width} px wide on a telephone of ${telephone.width}`);
  await page.setViewportSize(desktop);
  await page.evaluate(axe);
  const place = framed.has(name) ? "body" : ".VPContent";
  // axe reads all that is there, whatever place it is to look at.
  if (!framed.has(name)) await page.evaluate(removeFrame);
  const found = await seriousViolations(page, place, { rules: withoutColours });
  problems.push(
    ...found.map((text) => `axe: ${text}`),
    ...(await contrastProblems(page, place, seen.styles)),
  );
  return problems;
}

// On these the frame is looked at too: bar, list of pages and search are the same on all others.
const framed = new Set(["404.html", "index.html", "guide/quick-start.html", "reference/codes.html"]);

/** In a page. */
function removeFrame() {
  for (const bar of document.querySelectorAll(".VPNav, .VPLocalNav, .VPSidebar, .VPFooter")) bar.remove();
}

/** Every internal link against the files, and every fragment against the ids of its page. */
function brokenLinks({ ids, links }, names) {
  const files = new Set(names);
  return [...links].flatMap(([name, targets]) =>
    [...targets].flatMap((target) => {
      const [place, fragment] = decodeURIComponent(target).split("#");
      const file = place === "" || place.endsWith("/") ? `${place}index.html` : place;
      if (!files.has(file)) return [`${name}: leads to ${target}, which is not there`];
      if (fragment === undefined || fragment === "" || ids.get(file)?.has(fragment)) return [];
      return [`${name}: leads to ${target}, and that page has no such place`];
    }),
  );
}

/** What people search for, and the pages of which one has to be among the first two. */
const searches = {
  "idempotency-key-missing": ["reference/codes"],
  duplicate: ["guide/payouts", "guide/webhooks", "guide/idempotency-key"],
  redis: ["guide/stores"],
  "raw body": ["guide/payouts", "guide/express-4-commonjs", "guide/body-parsers"],
  "stream is not readable": ["guide/body-parsers"],
  middleware: ["guide/middlewares"],
  "rotate key": ["guide/rotation"],
  systemd: ["guide/deploy"],
  "health check": ["guide/deploy"],
  "revoked key": ["guide/keys", "guide/rotation"],
  idempotency: ["guide/idempotency-key", "guide/payouts"],
  timeout: ["concepts/failures", "guide/operate"],
  crash: ["concepts/failures"],
  "custom store": ["guide/write-a-store"],
  "double payment": ["guide/payouts", "concepts/failures"],
  "webhook signature": ["guide/webhooks", "guide/other-webhooks"],
  401: ["guide/unauthorized"],
  nginx: ["guide/behind-a-proxy"],
  galera: ["guide/past-one-machine"],
  docker: ["guide/docker"],
  lambda: ["guide/serverless"],
  cloudflare: ["guide/serverless"],
  vercel: ["guide/serverless"],
  prisma: ["guide/databases/prisma"],
  drizzle: ["guide/databases/drizzle"],
  kysely: ["guide/databases/kysely"],
  knex: ["guide/databases/knex"],
  typeorm: ["guide/databases/typeorm"],
  sequelize: ["guide/databases/sequelize"],
  mikroorm: ["guide/databases/mikro-orm"],
  serverless: ["guide/serverless"],
  outcome: ["guide/outcomes"],
  inbox: ["guide/inbox"],
  mariadb: ["guide/databases/mysql2", "reference/packages/mysql"],
};

async function searchProblems(browser, home) {
  const page = await browser.newPage();
  await page.goto(home);
  await hydrated(page);
  await page.keyboard.press("Control+k");
  const problems = [];
  for (const [term, wanted] of Object.entries(searches)) {
    await page.fill("#localsearch-input", "");
    await page.locator(".VPLocalSearchBox .result").first().waitFor({ state: "detached" });
    await page.fill("#localsearch-input", term);
    await page.locator(".VPLocalSearchBox .result").first().waitFor({ timeout: 15_000 });
    const hrefs = await page
      .locator(".VPLocalSearchBox .result")
      .evaluateAll((all) => all.map(({ href }) => href.replace(/\.html(#.*)?$/, "")));
    const first = [...new Set(hrefs)].slice(0, 2);
    if (!first.some((href) => wanted.some((name) => href.endsWith(name))))
      problems.push(`the search for ${term} gives ${first.join(", ")}`);
  }
  await page.close();
  return problems;
}

/** Each page is there as markdown, and llms.txt leads to all of them. */
function markdownProblems(pages, names) {
  const files = new Set(names);
  const expected = pages.filter((name) => name !== "404.html").map((name) => name.replace(/\.html$/, ".md"));
  const index = readFileSync(path.join(outputFolder, "llms.txt"), "utf8");
  return expected.flatMap((name) => [
    ...(files.has(name) ? [] : [`${name} is missing`]),
    ...(name === "index.md" || index.includes(`(${homepage}${name})`)
      ? []
      : [`llms.txt does not lead to ${name}`]),
  ]);
}

/** What others show of a link to a page: title, sentence and a picture that is there. */
function previewProblems(pages, names) {
  return pages
    .filter((name) => name !== "404.html")
    .flatMap((name) => {
      const html = readFileSync(path.join(outputFolder, name), "utf8");
      const of = (property) =>
        new RegExp(`<meta property="og:${property}" content="([^"]+)">`).exec(html)?.[1];
      const lacking = ["title", "description", "image"].filter((property) => of(property) === undefined);
      const picture = of("image")?.slice(homepage.length);
      const lost = picture === undefined || names.includes(picture) ? [] : [`og:image is ${picture}`];
      return [...lacking.map((property) => `has no og:${property}`), ...lost].map(
        (text) => `${name}: ${text}`,
      );
    });
}

async function serveFiles(base) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://127.0.0.1");
    const inside = pathname.startsWith(base) ? decodeURIComponent(pathname.slice(base.length)) : "../";
    const file = path.join(
      outputFolder,
      inside === "" || inside.endsWith("/") ? `${inside}index.html` : inside,
    );
    if (!file.startsWith(outputFolder) || !existsSync(file)) {
      response.writeHead(404).end();
      return;
    }
    response
      .writeHead(200, {
        "Content-Type": types[path.extname(file)] ?? "text/plain",
        // The scripts are the same on every page, and are compiled once then.
        "Cache-Control": "max-age=3600",
      })
      .end(readFileSync(file));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, origin: `http://127.0.0.1:${server.address().port}` };
}
