/** `text` of the page `file`, both as they are in the repository, with all that it repeats as it is today. */
export function filled(file: string, text: string): string;

/** For a reader who sees no mark: without them, and with the language alone beside a fence. */
export function withoutMarks(text: string): string;
