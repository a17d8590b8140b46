/** `page` with every file, output and part of a document in it. */
export function expand(
  page: string,
  options: {
    readonly pictureOf: (name: string, alt: string | undefined) => string;
    readonly rewrite: (part: string, file: string) => string;
  },
): string;
