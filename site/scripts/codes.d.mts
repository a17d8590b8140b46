/** What a package said, as the page of codes shows it, in a fence. */
export function exampleFence(text: string): string;
