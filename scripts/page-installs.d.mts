export function pageInstalls(
  tarballs: Readonly<Record<string, string>>,
): readonly { readonly line: string; readonly files: readonly string[] }[];
export function installedBy(text: string): readonly string[];
