import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, watch, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { build as buildPages, createServer } from "vitepress";
import { checkPages } from "./check.mjs";
import { prepare } from "./prepare.mjs";
import { homepage, root, site } from "./source.mjs";

export async function build() {
  await prepare();
  await buildPages(site);
}

export async function check() {
  const base = (process.env["DOCS_BASE"] ??= new URL(homepage).pathname);
  runShownTest();
  await build();
  await checkPages({ base });
}

export async function serve({ port }) {
  await prepare();
  const server = await createServer(site, { port, host: "127.0.0.1" });
  await server.listen();
  server.printUrls();
  let timer;
  // The API is read once: it takes longer than the rest together.
  const again = () => {
    clearTimeout(timer);
    timer = setTimeout(() => prepare({ api: false }).catch((error) => console.error(error.message)), 100);
  };
  for (const folder of ["pages", "pictures", "codes"])
    watch(path.join(site, folder), { recursive: true }, again);
  watch(path.join(root, "docs"), again);
}

/** Runs the test that the page on vitest shows, as it stands there, beside the app that the page shows. */
function runShownTest() {
  const folder = path.join(site, "node_modules/.cache/shown-test");
  mkdirSync(folder, { recursive: true });
  cpSync(path.join(site, "snippets/payout.test.mjs"), path.join(folder, "payout.test.mjs"));
  const app = path.join(root, "examples/snippets/dist/guide/test-app.js");
  writeFileSync(
    path.join(folder, "test-app.js"),
    `export * from ${JSON.stringify(pathToFileURL(app).href)};\n`,
  );
  const program = path.join(site, "node_modules/vitest/vitest.mjs");
  const env = { ...process.env, COUNTERSIGN_STDERR: "off" };
  const { status } = spawnSync(process.execPath, [program, "run", "--root", folder, "--dir", folder], {
    stdio: "inherit",
    env,
  });
  if (status !== 0) throw new Error("the test of the page on vitest failed");
}
