/** What the page says of a code. */
export interface CodeEntry {
  /** Undefined where there is no answer of its own: of an event, of a client that left, of a notice. */
  readonly status?: number;
  readonly notice?: true;
  /** Who tells it. */
  readonly by: readonly string[];
  readonly cause: string;
  readonly remedy: string;
  readonly example?: string;
  /** Makes it happen, and gives what was said. */
  readonly provoke?: () => Promise<{
    readonly code: string;
    readonly status?: number;
    readonly text: string;
  }>;
}

export const groups: readonly {
  readonly title: string;
  readonly codes: Readonly<Record<string, CodeEntry>>;
}[];
export const codes: ReadonlyMap<string, CodeEntry>;
