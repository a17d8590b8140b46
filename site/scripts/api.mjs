// The API pages, one for each package, from the doc comments of what it exports.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Application } from "typedoc";
import { packageFolder, workspacePackages } from "../../scripts/workspace.mjs";
import { pagesFolder, root, site } from "./source.mjs";

export async function writeApi(packages) {
  const out = path.join(pagesFolder, "reference/api");
  rmSync(out, { recursive: true, force: true });
  const app = await Application.bootstrapWithPlugins({
    entryPoints: ownersFirst(packages).map((name) => path.join(root, packageFolder(name), "src/index.ts")),
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
    logLevel: "Warn",
    validation: { notExported: false, invalidLink: true, notDocumented: false },
  });
  app.options.setValue("outputs", [{ name: "markdown", path: out }]);
  const project = await app.convert();
  if (project === undefined) throw new Error("typedoc could not read the packages");
  await app.generateOutputs(project);
  if (app.logger.hasErrors()) throw new Error("typedoc failed, see above");
  for (const name of packages) {
    const text = readFileSync(path.join(out, packageFolder(name), "src.md"), "utf8")
      .replace(/^# .*$/m, `# API of ${name}`)
      .replaceAll(/\]\((?:\.\.\/)+(?:[a-z-]+\/)?([a-z-]+)\/src\.md/g, "](./$1.md");
    writeFileSync(path.join(out, `${name}.md`), withHeadingsAsCounted(withReferencesAsList(text)));
  }
  // Its list of modules is the one at the side.
  for (const left of ["packages", "index.md"]) rmSync(path.join(out, left), { recursive: true, force: true });
}

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
    const owners = packages.filter((owner) => dependencies[`@countersign/${owner}`] !== undefined);
    for (const owner of owners) add(owner);
    ordered.add(name);
  };
  for (const name of packages) add(name);
  return [...ordered];
}
