import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Router } from "express";
import { requireLoopbackHost } from "./access.ts";
import { refuseOtherMethods } from "./problem.ts";

const types = { html: "text/html", css: "text/css", js: "text/javascript", svg: "image/svg+xml" } as const;

const require = createRequire(import.meta.url);
const shared = new URL("../../page/shared/", import.meta.url);
// Served from their packages: no build step, no copy.
const libraries = {
  "preact.js": new URL("preact.mjs", pathToFileURL(require.resolve("preact"))),
  "htm.js": new URL("htm.mjs", pathToFileURL(require.resolve("htm"))),
};

// Only the page's own files run, and no other page can frame it.
const headers = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cache-Control": "no-store",
} as const;

/**
 * Serves a page's files, read once: `index.html` at `/`, the rest, preact and htm under `/page/`. None holds a secret or needs the token.
 */
export function pageFiles(folder: URL): Router {
  const router = Router({ caseSensitive: true, strict: true });
  const add = (name: string, file: URL): void => {
    const path = name === "index.html" ? "/" : `/page/${name}`;
    const bytes = readFileSync(file);
    const type = `${typeOf(name)}; charset=utf-8`;
    router.use((req, res, next) => (req.path === path ? requireLoopbackHost(req, res, next) : next()));
    const route = router.route(path);
    route.get((_req, res) => {
      res.set(headers).type(type).send(bytes);
    });
    route.all(refuseOtherMethods("GET, HEAD"));
  };
  for (const place of [folder, shared])
    for (const file of readdirSync(place, { withFileTypes: true }))
      if (file.isFile()) add(file.name, new URL(file.name, place));
  for (const [name, file] of Object.entries(libraries)) add(name, file);
  return router;
}

function typeOf(name: string): string {
  const found = Object.entries(types).find(([ending]) => name.endsWith(`.${ending}`));
  if (found === undefined) throw new TypeError(`pageFiles: no media type for ${name}`);
  return found[1];
}
