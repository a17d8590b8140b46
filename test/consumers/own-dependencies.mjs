import { readdirSync } from "node:fs";
import { join } from "node:path";
import { manifest, root } from "./support.mjs";

const manifests = new Map(
  readdirSync(join(root, "packages")).map((folder) => {
    const read = manifest("packages", folder);
    return [read.name, read];
  }),
);

/** The packages, and those of ours that they depend on: what npm installs beside them. */
export function ownDependencies(names) {
  const all = new Set(names);
  for (const name of all) {
    for (const needed of Object.keys(manifests.get(name).dependencies ?? {})) {
      if (manifests.has(needed)) all.add(needed);
    }
  }
  return [...all];
}
