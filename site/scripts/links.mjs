// Links between documents of the repository become links between pages; what is no page is shown where the source is.
import { existsSync, statSync } from "node:fs";
import path from "node:path";
import { anchorsOf, githubAnchor, vitepressAnchor } from "./anchors.mjs";
import { documents, read, repository, root } from "./source.mjs";

/** The page of a file of the repository, undefined when there is none. */
export function pageOf(file) {
  const name = /^packages\/[a-z]+\/([a-z0-9-]+)(\/README\.md)?$/.exec(file)?.[1];
  if (name !== undefined) return `reference/packages/${name}`;
  if (file === "site/pages/README.md") return "index";
  return documents[file] ?? /^site\/pages\/(.+)\.md$/.exec(file)?.[1];
}

/** `markdown` of `file`, as it reads in `page`: both without an extension for pages, from the root. */
export function rewriteLinks(markdown, file, page) {
  return outsideCode(markdown, (text) =>
    text.replaceAll(/\]\(([^)\s]+)\)/g, (all, target) => {
      if (/^(https?:|mailto:)/.test(target)) return all;
      const [place, anchor] = target.split("#");
      const meant =
        place === ""
          ? file
          : path.posix.normalize(path.posix.join(path.posix.dirname(file), place)).replace(/\/$/, "");
      const other = pageOf(meant);
      const hash =
        anchor === undefined ? "" : `#${other === undefined ? anchor : anchorOnSite(meant, anchor)}`;
      if (place === "") return `](${hash})`;
      if (other !== undefined) return `](${relative(page, `${other}.md`)}${hash})`;
      if (/^docs\/pictures\/.+\.png$/.test(meant) && existsSync(path.join(root, meant)))
        return `](${relative(page, meant.slice("docs/".length))})`;
      if (!existsSync(path.join(root, meant))) throw new Error(`${file}: ${target} leads nowhere`);
      const kind = statSync(path.join(root, meant)).isDirectory() ? "tree" : "blob";
      return `](${repository}/${kind}/main/${meant === "." ? "" : meant}${hash})`;
    }),
  );
}

/** The anchor that a page has for a place of its file, which links name as the repository's view has it. */
export function anchorOnSite(file, anchor) {
  const text = read(statSync(path.join(root, file)).isDirectory() ? `${file}/README.md` : file);
  const at = anchorsOf(text, githubAnchor).indexOf(anchor);
  if (at < 0) throw new Error(`${file} has no heading #${anchor}`);
  return anchorsOf(text, vitepressAnchor)[at];
}

export function relative(from, to) {
  const way = path.posix.relative(path.posix.dirname(from), to);
  return way.startsWith(".") ? way : `./${way}`;
}

/** `change` applied to what is in no fence and in no code span. */
export function outsideCode(markdown, change) {
  const pieces = markdown.split(/(^ *```[\s\S]*?^ *```$|^(?: {4}.*\n)+|`[^`\n]+`)/m);
  return pieces.map((piece, index) => (index % 2 === 1 ? piece : change(piece))).join("");
}
