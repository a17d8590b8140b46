/** The anchor of a heading, as VitePress has it. */
export function vitepressAnchor(title: string): string;
/** The anchor of a heading, as GitHub has it. */
export function githubAnchor(title: string): string;
/** The anchors of all headings of a text. */
export function anchorsOf(markdown: string, anchorOf: (title: string) => string): readonly string[];
