interface Entry {
  readonly provoke?: (() => Promise<{ code: string; text: string }>) | undefined;
}

/** What docs/pages has to hold, by file from the root. `happen` makes the example of a code, in place of `provoke`. */
export function markdownFiles(options?: {
  readonly happen?: (code: string, entry: Entry) => Promise<{ code: string; text: string }>;
}): Promise<ReadonlyMap<string, string>>;

/** `packages/tools/cli/codes.json`, from the root, and what it has to hold. */
export function codesOfCommand(): readonly [file: string, text: string];

/** `packages/tools/cli/findings.json`, from the root, and what it has to hold. */
export function causesOfCommand(): readonly [file: string, text: string];

/** Each `AGENTS.md`, from the root, and what it has to hold. */
export function agentsFiles(): readonly (readonly [file: string, text: string])[];

/** Drawings of docs/pictures that were not made of what they should show. */
export function staleDrawings(): readonly string[];
