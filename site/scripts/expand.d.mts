/** `page` with every file, output and part of a document in it. */
export function expand(
  page: string,
  options: {
    readonly pictureOf: (name: string, alt: string | undefined) => string;
    readonly rewrite: (part: string, file: string) => string;
  },
): string;

/** The whole file, or one of its regions. */
export function fileText(file: string, options?: { readonly region?: string | undefined }): string;
