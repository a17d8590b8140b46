// Writes every page as plain markdown into .pages, from which VitePress builds: pages/, documents of the repository, the API, drawings
// and the recording. Fails when one is left out, or a link of the repository leads nowhere.
import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { documentedParts, packageFolder, workspacePackages } from "../../scripts/workspace.mjs";
import { descriptions } from "../descriptions.mjs";
import { navigation, referencePages } from "../navigation.mjs";
import { writeApi } from "./api.mjs";
import { withoutBadges } from "./badges.mjs";
import { withoutMarks } from "./fill.mjs";
import { pageOf, relative, rewriteLinks } from "./links.mjs";
import { forVitePress, withManagers, withoutParts, withParts } from "./page-text.mjs";
import { drawingNames, drawPictures } from "./pictures.mjs";
import { recordingSvg } from "./recording.mjs";
import { documents, homepage, pageFiles, pagesFolder, read, root, site } from "./source.mjs";

const packages = [...workspacePackages.keys()];
const parts = [...documentedParts.keys()].toSorted();
const hasTypes = ({ manifest }) =>
  Object.values(manifest.exports).some((target) => target.types !== undefined);
// Programs have no API: their pages are those of their commands.
const apiPackages = packages.filter((name) => hasTypes(workspacePackages.get(name)));

export async function prepare({ api = true } = {}) {
  // What is there stays until it is written anew: the server of `npm run docs` watches the folder.
  if (api) rmSync(pagesFolder, { recursive: true, force: true });
  const write = (page, text) => {
    const file = path.join(pagesFolder, page);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
  };
  const drawings = {
    ...(await drawPictures(drawingNames)),
    demo: recordingSvg(read("site", "recordings", "demo.cast"), { rows: 10 }),
  };
  for (const [name, { file }] of Object.entries(drawings)) write(`public/pictures/${name}.svg`, file);

  // For the pages, and for the markdown beside them.
  for (const name of readdirSync(path.join(root, "docs/pictures")).filter((file) => file.endsWith(".png"))) {
    for (const folder of ["pictures", "public/pictures"]) {
      mkdirSync(path.join(pagesFolder, folder), { recursive: true });
      cpSync(path.join(root, "docs/pictures", name), path.join(pagesFolder, folder, name));
    }
  }

  const pages = new Map();
  for (const file of pageFiles()) {
    const page = pageOf(file);
    pages.set(page, finish(file, page, drawings));
  }
  for (const [file, page] of Object.entries(documents)) {
    pages.set(page, rewriteLinks(read(file), file, page));
  }
  for (const name of packages) {
    const file = `${packageFolder(name)}/README.md`;
    const page = `reference/packages/${name}`;
    // A README that says all there is to say is the page as it stands.
    const text = pages.get(page) ?? rewriteLinks(withoutBadges(read(file)), file, page);
    pages.set(page, withApiLink(text, name));
  }
  for (const name of parts.filter((part) => !packages.includes(part))) {
    const page = `reference/packages/${name}`;
    pages.set(page, withApiLink(pages.get(page), name));
  }
  pages.set("reference/api", apiPage());
  for (const [page, text] of pages) write(`${page}.md`, forVitePress(text));
  if (api) await writeApi(apiPackages);

  const groups = [...navigation, ...referencePages(parts, apiPackages)];
  const listed = groups.flatMap(({ page, items }) => [
    ...(page === undefined ? [] : [page]),
    ...items.map((item) => item.page),
  ]);
  const present = ["index", ...pages.keys(), ...apiPackages.map((name) => `reference/api/${name}`)];
  const lost = [
    ...present.filter((page) => page !== "index" && !listed.includes(page)),
    ...listed.filter((page) => !present.includes(page)),
  ];
  if (lost.length > 0) throw new Error(`navigation.mjs and the pages differ in ${lost.join(", ")}`);

  // Beside the HTML, for those who read markdown: the drawings as images in place of their SVG.
  for (const page of new Set(present)) {
    const text = read("site", ".pages", `${page}.md`);
    const plain = withoutParts(withoutHeader(text)).replaceAll(drawn, (_all, name, alt) => {
      return `![${alt}](${relative(page, `pictures/${name}`)}.svg)`;
    });
    write(`public/${page}.md`, page === "index" ? `# countersign\n\n${plain}` : plain);
    write(`${page}.md`, withHeader(withParts(withManagers(text)), page));
  }
  const named = groups
    .flatMap(({ items }) => items)
    .filter(({ page }) => !page.startsWith("reference/packages/") && descriptions[page] !== undefined);
  const other = named.filter(({ text, page }) => text !== titleOf(page));
  if (other.length > 0)
    throw new Error(`another title in the menu: ${other.map(({ page }) => page).join(", ")}`);
  write("public/llms.txt", llmsText(groups));
  writeFileSync(path.join(pagesFolder, "groups.json"), JSON.stringify(groups));
  cpSync(path.join(site, "icon.svg"), path.join(pagesFolder, "public/icon.svg"));
  cpSync(path.join(site, "recordings", "demo.cast"), path.join(pagesFolder, "public/pictures/demo.cast"));
}

const drawn = /<figure class="drawing" data-name="([\w-]+)" data-alt="([^"]*)"[\s\S]*?<\/figure>/g;

const picture = /^!\[([^\]]+)\]\((?:\.\.\/)+docs\/pictures\/([\w-]+)\.svg\)$/gm;

/** A page of site/pages: its pictures are drawn in it, so that they follow the colours of the page. */
function finish(file, page, drawings) {
  const text = withoutMarks(read(file)).replaceAll(picture, (_all, alt, name) => {
    if (drawings[name] === undefined) throw new Error(`${file}: picture ${name}`);
    const { inline } = drawings[name];
    const labelled = inline.replace("<svg", `<svg role="img" aria-label="${alt}"`);
    return `<figure class="drawing" data-name="${name}" data-alt="${alt}" tabindex="0" v-pre>${labelled}</figure>`;
  });
  return rewriteLinks(text, file, page);
}

function withApiLink(text, name) {
  const { manifest } = documentedParts.get(name);
  const owner = packages.find((each) => workspacePackages.get(each).manifest === manifest);
  if (!apiPackages.includes(owner)) return text;
  return `${text}\n## API\n\nEvery export, from its doc comments: [API of ${owner}](../api/${owner}.md).\n`;
}

function apiPage() {
  const rows = apiPackages.map((name) => {
    const { description } = workspacePackages.get(name).manifest;
    return `- [${name}](./api/${name}.md): ${description}`;
  });
  return `# API\n\nEvery export of each package, from its doc comments.\n\n${rows.join("\n")}\n`;
}

/** What a page is about, from descriptions.mjs, or its package's manifest. */
function aboutOf(page) {
  const name = /^reference\/(?:packages|api)\/(.+)$/.exec(page)?.[1];
  if (name === undefined || descriptions[page] !== undefined) return descriptions[page];
  const { description, keywords } = workspacePackages.get(name).manifest;
  return {
    description: page.includes("/api/") ? `Every export of ${name}. ${description}` : description,
    keywords: keywords.join(" "),
  };
}

function withHeader(text, page) {
  const about = aboutOf(page);
  if (!about?.description || !about.keywords)
    throw new Error(`descriptions.mjs lacks ${page}, or a part of it`);
  const own = /^---\n([\s\S]*?)\n---\n/.exec(text)?.[1];
  const rows = [
    ...(own === undefined ? [] : [own]),
    ...Object.entries(about).map(([name, value]) => `${name}: ${JSON.stringify(value)}`),
  ];
  if (page.startsWith("reference/api")) rows.push("pageClass: api");
  if (page === "reference/codes") rows.push("pageClass: codes", "outline: [2, 2]");
  return `---\n${rows.join("\n")}\n---\n\n${withoutHeader(text)}`;
}

const titleOf = (page) => /^# (.*)$/m.exec(read("site", ".pages", `${page}.md`))?.[1].replaceAll("`", "");

function withoutHeader(text) {
  return text.replace(/^---\n[\s\S]*?\n---\n+/, "");
}

function llmsText(groups) {
  const list = groups.map(({ text, page, items }) => {
    const all = page === undefined ? items : [{ text, page }, ...items];
    const rows = all.map(
      (item) => `- [${item.text}](${homepage}${item.page}.md): ${aboutOf(item.page).description}`,
    );
    return `## ${text}\n\n${rows.join("\n")}\n`;
  });
  const { description } = JSON.parse(read("package.json"));
  return `# countersign\n\n> ${description}\n\nEvery page is markdown at the same address with .md in place of .html.\n\n${list.join("\n")}`;
}
