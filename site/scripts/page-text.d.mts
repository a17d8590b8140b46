/** A page as VitePress wants it. */
export function forVitePress(text: string): string;

/** Commands that install get a tab for each package manager. */
export function withManagers(markdown: string): string;
