import { readFileSync } from "node:fs";
import { Router } from "express";
import { requireLoopbackHost } from "../service/access.ts";
import { addPath } from "../service/paths.ts";

const types = { html: "text/html", css: "text/css", js: "text/javascript", svg: "image/svg+xml" } as const;

const files: readonly (readonly [path: string, file: string, type: keyof typeof types])[] = [
  ["/", "index.html", "html"],
  ["/page/style.css", "style.css", "css"],
  ["/page/icon.svg", "icon.svg", "svg"],
  ...["app", "calls", "elements", "deliveries", "payouts", "simulation", "service"].map(
    (name) => [`/page/${name}.js`, `${name}.js`, "js"] as const,
  ),
];

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

/** The files of the page: none holds a secret, so that anybody on this machine may read them. */
export function pageFiles(): Router {
  const router = Router({ caseSensitive: true, strict: true });
  for (const [path, file, type] of files) {
    const bytes = readFileSync(new URL(`../../page/${file}`, import.meta.url));
    router.use((req, res, next) => (req.path === path ? requireLoopbackHost(req, res, next) : next()));
    addPath(router, path, {
      get(_req, res) {
        res.set(headers).type(`${types[type]}; charset=utf-8`).send(bytes);
      },
    });
  }
  return router;
}
