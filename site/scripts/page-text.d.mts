/** A page as VitePress wants it. */
export function forVitePress(text: string): string;
