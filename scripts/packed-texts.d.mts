/** The pages that a package reads when it runs, by its name. */
export const packedPages: Readonly<Record<string, readonly string[]>>;

/** The README of the package in `place`, with whole addresses in place of the ways to files. */
export function packedReadme(text: string, place: string): string;
