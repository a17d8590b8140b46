import { readFileSync } from "node:fs";
import { Router } from "express";
import { requireLoopbackHost } from "./access.ts";
import { refuseOtherMethods } from "./problem.ts";

const types = { html: "text/html", css: "text/css", js: "text/javascript", svg: "image/svg+xml" } as const;

const shared = ["elements.js", "frame.js", "service.js", "style.css", "icon.svg"] as const;

// Nothing but the page's own files runs, is shown or is asked; no other page can hold it in a frame.
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
 * Serves the files of a page: `index.html` at `/`, the others of `names` and the shared ones under `/page/`. They are read once, from
 * `folder`. None holds a secret, so that anybody on this machine may read them.
 */
export function pageFiles(folder: URL, names: readonly string[]): Router {
  const router = Router({ caseSensitive: true, strict: true });
  const add = (path: string, file: URL): void => {
    const bytes = readFileSync(file);
    const type = `${typeOf(file.pathname)}; charset=utf-8`;
    router.use((req, res, next) => (req.path === path ? requireLoopbackHost(req, res, next) : next()));
    const route = router.route(path);
    route.get((_req, res) => {
      res.set(headers).type(type).send(bytes);
    });
    route.all(refuseOtherMethods("GET, HEAD"));
  };
  add("/", new URL("index.html", folder));
  for (const name of names) add(`/page/${name}`, new URL(name, folder));
  for (const name of shared) add(`/page/${name}`, new URL(`../page/${name}`, import.meta.url));
  return router;
}

function typeOf(path: string): string {
  const found = Object.entries(types).find(([ending]) => path.endsWith(`.${ending}`));
  if (found === undefined) throw new TypeError(`pageFiles: no media type for ${path}`);
  return found[1];
}
