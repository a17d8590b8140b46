const maxLength = 100;

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
}

/** The name that differs from `text` in letter case, signs, or one place of up to two characters. */
export function nearest(text: string, names: readonly string[]): string | undefined {
  if (text.length > maxLength || plain(text) === "") return undefined;
  return (
    names.find((name) => plain(name) === plain(text)) ??
    names.find((name) => name.length <= maxLength && isSlip(text.toLowerCase(), name.toLowerCase()))
  );
}

function isSlip(one: string, other: string): boolean {
  const longer = Math.max(one.length, other.length);
  const shorter = Math.min(one.length, other.length);
  let start = 0;
  while (start < shorter && one[start] === other[start]) start += 1;
  let end = 0;
  while (end < shorter - start && one.at(-1 - end) === other.at(-1 - end)) end += 1;
  return longer - start - end <= Math.min(2, Math.floor(longer / 3));
}
