// Makes what the package publishes of templates/: the TypeScript as it is, and JavaScript of it without its types, comments
// and empty lines kept. Into dist/templates, or another folder:
//     node scripts/build-templates.mjs [FOLDER]
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { transformSync } from "@swc/wasm-typescript";
import { format } from "oxfmt";

const home = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const source = path.join(home, "templates");
const finished = path.resolve(process.argv[2] ?? path.join(home, "dist", "templates"));
// Aside, then moved: whoever reads the folder finds all of it.
mkdirSync(path.dirname(finished), { recursive: true });
const target = mkdtempSync(`${finished}-`);
chmodSync(target, 0o755);
const { printWidth } = JSON.parse(readFileSync(path.join(home, "../../../.oxfmtrc.json"), "utf8"));

const files = readdirSync(source, { recursive: true }).filter((file) => {
  // Beside the folders of the pieces lies what type-checks them here.
  return file.includes(path.sep) && statSync(path.join(source, file)).isFile();
});
await Promise.all(files.flatMap((file) => [writeTypeScript(file), writeJavaScript(file)]));
rmSync(finished, { recursive: true, force: true });
renameSync(target, finished);

async function writeTypeScript(file) {
  cpSync(path.join(source, file), path.join(target, "ts", file), { recursive: true });
}

async function writeJavaScript(file) {
  if (path.basename(file) === "tsconfig.json") return;
  const text = readFileSync(path.join(source, file), "utf8");
  const name = path.join(target, "js", ofJavaScript(file));
  mkdirSync(path.dirname(name), { recursive: true });
  writeFileSync(name, ofJavaScript(file.endsWith(".ts") ? await withoutTypes(file, text) : text));
}

/** Files that are named in imports, comments and texts. */
function ofJavaScript(text) {
  return text.replaceAll(/\b([\w-]+)\.ts\b/g, "$1.js");
}

async function withoutTypes(file, text) {
  // These would leave an empty line among the imports. All other types become spaces, so that the rest stays where it is, and
  // the formatter takes the spaces away.
  const imported = text.replaceAll(/^import type [^;]+;\n/gm, "");
  const { code } = transformSync(imported, { filename: file, mode: "strip-only", module: true });
  const { code: formatted, errors } = await format(ofJavaScript(file), code, { printWidth });
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
  return formatted;
}
