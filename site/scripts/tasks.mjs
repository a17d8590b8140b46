import { watch } from "node:fs";
import path from "node:path";
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
