import { workspacePackages } from "../../scripts/workspace.mjs";

const manifests = new Map([...workspacePackages.values()].map(({ manifest }) => [manifest.name, manifest]));

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
