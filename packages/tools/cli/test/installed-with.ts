import { cpSync, mkdirSync, mkdtempSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const built = fileURLToPath(new URL("..", import.meta.url));
const root = fileURLToPath(new URL("../../../../node_modules", import.meta.url));

/**
 * The command line as it is installed with other packages: names of root packages by their names there, undefined for one that is
 * missing. Made in `folder`; returns the file to run.
 */
export function installedWith(
  packages: Readonly<Record<string, string | undefined>>,
  folder: string,
): string {
  const installed = mkdtempSync(join(folder, "installed-"));
  const modules = join(installed, "node_modules");
  mkdirSync(join(modules, scope), { recursive: true });
  for (const name of [...readdirSync(root), ...readdirSync(join(root, scope)).map(scoped)]) {
    const target = name in packages ? packages[name] : name;
    if (target !== undefined && name !== scope) symlinkSync(join(root, target), join(modules, name));
  }
  const own = join(installed, "cli");
  cpSync(built, own, { recursive: true, filter: (path) => !/[\\/](?:src|test)$/.test(path) });
  return join(own, "dist/cli.js");
}

// A folder with packages of ours, of which one may be missing.
const scope = "@countersign";

function scoped(name: string): string {
  return `${scope}/${name}`;
}
