/** The whole file, or one of its regions. */
export function fileText(file: string, options?: { readonly region?: string | undefined }): string;
