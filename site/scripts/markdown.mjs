// The pages as markdown for the view of the repository, committed in docs/pages: everything that pages take from elsewhere is in its
// place, and links lead to files. Needs what is built, and none of this folder's dependencies but for a drawing that has changed.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { packageFolder } from "../../scripts/workspace.mjs";
import { navigation } from "../navigation.mjs";
import { anchorsOf, githubAnchor, vitepressAnchor } from "./anchors.mjs";
import { badges, numberBadges, readmesWithBadges } from "./badges.mjs";
import { codesJson, codesPage, wordsOf } from "./codes-page.mjs";
import { expand } from "./expand.mjs";
import { outsideCode, relative, rewriteLinks } from "./links.mjs";
import { withoutMarks } from "./page-text.mjs";
import { drawingNames, drawingSource } from "./pictures.mjs";
import { stillSvg } from "./still.mjs";
import { documents, homepage, read, repository, root, site } from "./source.mjs";

const folder = "docs/pages";
const sourceOf = (name) => `site/pages/${name}.md`;

/** What docs/pages has to hold, by file from the root. `happen` gives the examples of codes, as `codesPage` takes it. */
export async function markdownFiles({ happen } = {}) {
  const pages = ownPages();
  const codes = (await codesPage({ happen })).replace(/^---\n[\s\S]*?\n---\n+/, "");
  pages.set("reference/codes", { from: "site/codes", text: codes });
  const places = new Places(pages);
  const files = [...pages].map(([page, { from, text }]) => {
    return [
      `${folder}/${page}.md`,
      `${madeFrom(from)}\n\n${places.linked(withoutMarks(text), page).trimEnd()}\n`,
    ];
  });
  return new Map([...files, [`${folder}/README.md`, indexPage(places)]]);
}

const madeFrom = (file) => `<!-- Made by \`npm run docs:markdown\` from ${file}: change that. -->`;

function ownPages() {
  const own = readdirSync(path.join(site, "pages"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md") && file !== "index.md")
    .map((file) => file.replaceAll(path.sep, "/").replace(/\.md$/, ""));
  return new Map(own.map((page) => [page, { from: sourceOf(page), text: expanded(page) }]));
}

function expanded(page) {
  return expand(read(sourceOf(page)), {
    pictureOf: (name, alt) => `![${alt}](${relative(page, `pictures/${name}.svg`)})`,
    rewrite: (part, file) => rewriteLinks(part, file, page),
  });
}

/** Where pages are in the repository. */
class Places {
  #pages;

  constructor(pages) {
    this.#pages = pages;
  }

  /** The file of a page, from the root. */
  fileOf(page) {
    if (this.#pages.has(page)) return `${folder}/${page}.md`;
    const document = Object.entries(documents).find(([, of]) => of === page)?.[0];
    if (document !== undefined) return document;
    if (page === "index") return `${folder}/README.md`;
    const name = /^reference\/packages\/([a-z-]+)$/.exec(page)?.[1];
    if (name !== undefined) return `${packageFolder(name)}/README.md`;
    throw new Error(`no file of the repository is the page ${page}`);
  }

  /** `text` of a page, with links to files in place of links to pages: as `addressOf` gives the way to a file. */
  linked(text, page, addressOf = (file) => relative(`${folder}/${page}`, file)) {
    return outsideCode(text, (piece) =>
      piece.replaceAll(/\]\(([^)\s]+)\)/g, (all, target) => {
        const file = this.#target(target, page);
        return file === undefined ? all : `](${addressOf(file)})`;
      }),
    );
  }

  /** A file with its anchor; undefined for what is outside of the repository. */
  #target(target, page) {
    const [, kept] = new RegExp(`^${repository}/(?:blob|tree)/main/(.*)$`).exec(target) ?? [];
    // A folder shows its README, which has no anchors where the folder is shown.
    if (kept !== undefined)
      return existsSync(path.join(root, kept.split("#")[0], "README.md"))
        ? kept.replace(/\/?#/, "/README.md#")
        : kept;
    if (target.startsWith(homepage)) return this.#place(target.slice(homepage.length), ".html", page);
    if (/^(https?|mailto):/.test(target)) return undefined;
    const [place, anchor] = target.split("#");
    const meant = place.startsWith("/")
      ? place.slice(1)
      : path.posix.normalize(
          path.posix.join(path.posix.dirname(page), place === "" ? `${path.posix.basename(page)}.md` : place),
        );
    if (meant.startsWith("pictures/")) return `docs/${meant}`;
    return this.#place(anchor === undefined ? meant : `${meant}#${anchor}`, ".md", page);
  }

  #place(target, extension, from) {
    const [place, anchor] = target.split("#");
    const page = place.slice(0, -extension.length);
    if (!place.endsWith(extension)) throw new Error(`${from}: ${target} is no page`);
    const file = this.fileOf(page);
    if (anchor === undefined) return file;
    const text = this.#pages.get(page)?.text ?? read(file);
    const at = anchorsOf(text, vitepressAnchor).indexOf(anchor);
    if (at < 0) throw new Error(`${from}: ${target} leads to no heading`);
    return `${file}#${anchorsOf(text, githubAnchor)[at]}`;
  }
}

function indexPage(places) {
  const groups = navigation.map(({ text, items }) => {
    const rows = items.map(
      (item) => `- [${item.text}](${relative(`${folder}/README`, places.fileOf(item.page))})`,
    );
    return `## ${text}\n\n${rows.join("\n")}\n`;
  });
  const about =
    "The documentation, page by page. `npm run docs` serves the same pages with a search; each package's page is linked from\nits README, and lies in [reference/packages](reference/packages).";
  return `<!-- Made by \`npm run docs:markdown\` from site/navigation.mjs: change that. -->\n\n# Pages\n\n${about}\n\n${groups.join("\n")}`;
}

/** Drawings of docs/pictures that were not made of what they should show. */
export function staleDrawings() {
  return drawingNames.filter((name) => {
    const file = pictureFile(name);
    return !existsSync(file) || !readFileSync(file, "utf8").includes(stampOf(name));
  });
}

const pictureFile = (name) => path.join(root, "docs/pictures", `${name}.svg`);

function stampOf(name) {
  return `<!-- of ${createHash("sha256").update(drawingSource(name)).digest("hex")} -->`;
}

/** `packages/tools/cli/codes.json`, from the root, and what it has to hold. */
export function codesOfCommand() {
  return [`${packageFolder("cli")}/codes.json`, codesJson()];
}

/** `packages/tools/cli/findings.json`, from the root, and what it has to hold: each finding's cause, from the page of the doctor. */
export function causesOfCommand() {
  const [, ...sections] = read(sourceOf("guide/doctor")).split(/^### /m);
  const causes = sections.map((section) => {
    const [own] = section.split("\n## ");
    const [id, ...cause] = own.trim().split("\n");
    return [id, wordsOf(cause.join(" ").trim())];
  });
  const told = causes.filter(([, cause]) => cause !== "");
  return [
    `${packageFolder("cli")}/findings.json`,
    `${JSON.stringify(Object.fromEntries(told), undefined, 2)}\n`,
  ];
}

// What a project installs first, and what it is created with.
const withAgents = [
  ...["countersign", "fastify", "fetch"].map(packageFolder),
  `${packageFolder("create-countersign")}/templates/common`,
];

/** Each `AGENTS.md`, from the root, and what all of them have to hold: the page for assistants, which leads to the repository. */
export function agentsFiles() {
  const page = "guide/agents";
  const pages = ownPages();
  const { from, text } = pages.get(page);
  // The page of codes is not made for this: no link leads to one of its places.
  pages.set("reference/codes", { from: "site/codes", text: "# Codes\n" });
  const linked = new Places(pages).linked(text, page, (file) => `${repository}/blob/main/${file}`);
  const whole = `${madeFrom(from)}\n\n${linked.trimEnd()}\n`;
  return withAgents.map((place) => [`${place}/AGENTS.md`, whole]);
}

/** Writes docs/pages anew, and the drawings that have changed. */
export async function writeMarkdown() {
  const others = [codesOfCommand(), causesOfCommand(), ...agentsFiles()];
  for (const [file, text] of [...others, ...badges(), ...numberBadges(), ...readmesWithBadges()])
    writeFileSync(path.join(root, file), text);
  const stale = staleDrawings();
  if (stale.length > 0) {
    const { ensureSiteInstalled } = await import("./install.mjs");
    ensureSiteInstalled();
    const { drawPictures } = await import("./pictures.mjs");
    for (const [name, { file }] of Object.entries(await drawPictures(stale)))
      writeFileSync(pictureFile(name), `${file}${stampOf(name)}\n`);
  }
  writeFileSync(pictureFile("demo"), stillSvg(read("site/recordings/demo.cast")));
  const files = await markdownFiles();
  rmSync(path.join(root, folder), { recursive: true, force: true });
  for (const [file, text] of files) {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    writeFileSync(path.join(root, file), text);
  }
  console.log(`${files.size} files in ${folder}`);
}
