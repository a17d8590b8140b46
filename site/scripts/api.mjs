// The API pages, one for each package, from the doc comments of what it exports.
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Application } from "typedoc";
import { workspacePackages } from "../../scripts/workspace.mjs";
import { pagesFolder, root, site } from "./source.mjs";

export async function writeApi(packages) {
  const out = path.join(pagesFolder, "reference/api");
  rmSync(out, { recursive: true, force: true });
  const app = await Application.bootstrapWithPlugins({
    entryPoints: ownersFirst(packages)
      .flatMap(modulesOf)
      .map(({ source }) => path.join(root, source)),
    tsconfig: path.join(site, "tsconfig.json"),
    plugin: ["typedoc-plugin-markdown"],
    router: "module",
    readme: "none",
    name: "API",
    skipErrorChecking: true,
    excludePrivate: true,
    excludeInternal: true,
    excludeExternals: true,
    disableSources: true,
    basePath: root,
    displayBasePath: root,
    hidePageHeader: true,
    hideBreadcrumbs: true,
    useCodeBlocks: true,
    useHTMLEncodedBrackets: true,
    sanitizeComments: true,
    parametersFormat: "table",
    interfacePropertiesFormat: "table",
    typeAliasPropertiesFormat: "table",
    entryFileName: "index",
    groupOrder: ["Functions", "Classes", "Variables", "Interfaces", "Type Aliases", "*"],
    logLevel: "Warn",
    validation: { notExported: false, invalidLink: true, notDocumented: false },
  });
  app.options.setValue("outputs", [{ name: "markdown", path: out }]);
  const project = await app.convert();
  if (project === undefined) throw new Error("typedoc could not read the packages");
  await app.generateOutputs(project);
  if (app.logger.hasErrors()) throw new Error("typedoc failed, see above");
  for (const name of packages) {
    const texts = modulesOf(name).map(({ source, entry }) => {
      const text = readFileSync(writtenPage(out, source), "utf8")
        .replace(/^# .*$/m, entry === name ? "" : `# ${entry}`)
        .replaceAll(
          /\]\(((?:\.{1,2}\/)*[\w-]+(?:\/[\w-]+)*)\.md/g,
          (_link, to) => `](./${ownerOf(source, to)}.md`,
        );
      return withFullCells(withReferencesAsList(text.replaceAll(/(?:\\?_){2}namedParameters/g, "options")));
    });
    writeFileSync(
      path.join(out, `${name}.md`),
      withHeadingsAsCounted(`# API of ${name}\n\n${texts.join("\n\n")}`),
    );
  }
  // Its list of modules is the one at the side.
  for (const left of ["packages", "index.md"]) rmSync(path.join(out, left), { recursive: true, force: true });
}

/** The entry points of a package: what is imported, without the scope, and its source. */
function modulesOf(name) {
  const { folder, manifest } = workspacePackages.get(name);
  return Object.entries(manifest.exports)
    .filter(([, target]) => target.types !== undefined)
    .map(([subpath, { types }]) => ({
      entry: path.posix.join(name, subpath),
      source: `${folder}/${types.replace("./dist/", "src/").replace(/\.d\.ts$/, ".ts")}`,
    }));
}

/** Where typedoc writes the page of a module. */
function pageOf(source) {
  return `${source.replace(/(?:\/index)?\.ts$/, "")}.md`;
}

/** The same as a file. A name that typedoc has given before gets a number. */
function writtenPage(out, source) {
  const file = path.join(out, pageOf(source));
  return existsSync(file) ? file : file.replace(/\.md$/, "-1.md");
}

/** The package whose page a link of typedoc leads to, from the page of a module: the folder above its src. */
function ownerOf(source, to) {
  const [folder] = path.posix.join(path.posix.dirname(pageOf(source)), to).split("/src");
  return path.posix.basename(folder);
}

// typedoc gives modifier, default and description a column each, which most rows leave empty: they go to the type, in its cell.
function withFullCells(text) {
  return text.replaceAll(/(?:^\|.*\|\n)+/gm, (table) => {
    const [heads, , ...rows] = table.trim().split("\n").map(cellsOf);
    const [first] = heads;
    const full = rows.map(([name, ...cells]) => {
      const given = Object.fromEntries(
        cells.map((cell, index) => [heads[index + 1], cell === "-" ? "" : cell]),
      );
      const { Modifier, Type, Description, "Inherited from": source } = given;
      const byDefault = given["Default value"] || given["Default type"];
      const type = [Modifier, Type, byDefault && `= ${byDefault}`].filter(Boolean).join(" ");
      // Parameters of a type have none.
      if (first === "Type Parameter") return [`${name} ${type}`.trim()];
      return [name, [type, Description, source && `From ${source}.`].filter(Boolean).join("<br>")];
    });
    if (full.flat().includes("")) throw new Error(`typedoc has left a cell empty:\n${table}`);
    const head = [first, "Type"].slice(0, full[0].length);
    return [head, head.map(() => "---"), ...full].map((cells) => `| ${cells.join(" | ")} |\n`).join("");
  });
}

const cellsOf = (row) =>
  row
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim());

// What a package only exports again: a line each, which leads to the owner's page.
function withReferencesAsList(text) {
  const [before, references, ...after] = text.split(/^## References\n/m);
  if (references === undefined) return text;
  if (after.length > 0) throw new Error("typedoc wrote two lists of references");
  const lines = [...references.matchAll(/^Re-exports (\[\w+\]\(\.\/([a-z-]+)\.md#.*\))$/gm)];
  if (lines.length !== references.match(/^### /gm)?.length)
    throw new Error("typedoc wrote another reference");
  const list = lines.map(([, link, owner]) => `- ${link} of ${owner}`).join("\n");
  return `${before}## Exported again\n\n${list}\n`;
}

// typedoc counts a heading once more than VitePress where a class and a type begin alike: `#x-1` of the only `x`.
function withHeadingsAsCounted(text) {
  const headings = [...text.matchAll(/^#+ (.*)$/gm)].map(([, title]) => title.toLowerCase());
  return text.replaceAll(/\(#([a-z]+)-1\)/g, (link, name) => {
    return headings.filter((title) => title === name).length === 1 ? `(#${name})` : link;
  });
}

// typedoc describes a type where it meets it first, and leads there from every other package that exports it.
function ownersFirst(packages) {
  const ordered = new Set();
  const add = (name) => {
    const { dependencies = {} } = workspacePackages.get(name).manifest;
    const owners = packages.filter((owner) => {
      return dependencies[workspacePackages.get(owner).manifest.name] !== undefined;
    });
    for (const owner of owners) add(owner);
    ordered.add(name);
  };
  for (const name of packages) add(name);
  return [...ordered];
}
