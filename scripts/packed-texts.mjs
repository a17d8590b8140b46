// The step `prepublishOnly` of the workspace, which lerna runs before it packs: writes into the packages what they have on npm beside what
// lies in their folders. Not `prepack`, which npm also runs before the script `pack`: it would change the working tree. READMEs lead to the
// repository by whole addresses, and a package that reads pages has copies of these.
import { cpSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { pageOf } from "../packages/kernel/core/dist/docs.js";
import { anchorOnSite, outsideCode } from "../site/scripts/links.mjs";
import { repository } from "../site/scripts/source.mjs";
import { packageFolder, root, workspacePackages } from "./workspace.mjs";

/** The pages that a package reads when it runs, by its name. */
export const packedPages = { cli: ["reference/codes", "guide/doctor"] };

/** Writes the texts of the packages below `folder`, which has them as the workspace has. */
export function writePackedTexts(folder = root) {
  for (const name of workspacePackages.keys()) {
    const own = path.join(folder, packageFolder(name));
    const readme = path.join(own, "README.md");
    writeFileSync(readme, packedReadme(readFileSync(readme, "utf8"), packageFolder(name)));
    for (const page of packedPages[name] ?? []) {
      const copy = path.join(own, "pages", `${page}.md`);
      mkdirSync(path.dirname(copy), { recursive: true });
      cpSync(path.join(root, "site/pages", `${page}.md`), copy);
    }
  }
}

/** The README of the package in `place`, with whole addresses in place of the ways to files. */
export function packedReadme(text, place) {
  return outsideCode(text, (piece) =>
    piece.replaceAll(/\]\((?!https?:|mailto:|#)([^)\s]+)\)/g, (_all, target) => {
      const [way, anchor] = target.split("#");
      return `](${addressOf(path.posix.join(place, way), anchor)})`;
    }),
  );
}

function addressOf(file, anchor) {
  const page = /^site\/pages\/(.+)\.md$/.exec(file)?.[1];
  if (page !== undefined) return addressOfPage(page, file, anchor);
  const isPicture = /\.(?:svg|png|webp)$/.test(file);
  const isFolder = statSync(path.join(root, file)).isDirectory();
  const address = `${repository}/${isPicture ? "raw" : isFolder ? "tree" : "blob"}/main/${file}`;
  return anchor === undefined ? address : `${address}#${anchor}`;
}

/** By the setting of core's docs.ts, which is the address in log lines and errors too. */
function addressOfPage(page, file, anchor) {
  if (anchor === undefined) return pageOf(page);
  return pageOf(`${page}#${pageOf(page).endsWith(".md") ? anchor : anchorOnSite(file, anchor)}`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) writePackedTexts();
