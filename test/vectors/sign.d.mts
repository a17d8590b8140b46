/** The line of a vector with its signatures made. */
export function signedLine(line: string): string;
