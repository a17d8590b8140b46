import validate from "validate-npm-package-name";

/** Where a platform is written; also its name when its folder's name cannot be one. */
export const defaultName = "payout-platform";

export function nameFault(name: string): string | undefined {
  const { validForNewPackages, errors = [], warnings = [] } = validate(name);
  if (validForNewPackages) return undefined;
  return `npm does not take ${JSON.stringify(name)}: ${[...errors, ...warnings].join(", ")}`;
}

export function nameOf(folder: string): string {
  const name = folder
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/\p{M}/gu, "")
    .replaceAll(/[^a-z0-9._-]+/g, "-")
    .replaceAll(/^[._-]+|[._-]+$/g, "")
    .slice(0, 200);
  return name !== "" && nameFault(name) === undefined ? name : defaultName;
}
