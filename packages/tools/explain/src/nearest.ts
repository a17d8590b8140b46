const maxLength = 100;

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
}

/** The name among `names` that `text` is a slip of the pen away from; undefined when none is near. */
export function nearest(text: string, names: readonly string[]): string | undefined {
  if (text.length > maxLength || text === "") return undefined;
  const same = names.find((name) => plain(name) === plain(text) && plain(text) !== "");
  if (same !== undefined) return same;
  let best: { readonly name: string; readonly distance: number } | undefined;
  for (const name of names) {
    if (Math.abs(name.length - text.length) > 3 || name.length > maxLength) continue;
    const distance = distanceOf(text.toLowerCase(), name.toLowerCase());
    if (best === undefined || distance < best.distance) best = { name, distance };
  }
  const allowed = Math.min(3, Math.floor(text.length / 3));
  return best !== undefined && best.distance <= allowed ? best.name : undefined;
}

// Levenshtein's, row by row.
function distanceOf(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let at = 1; at <= one.length; at += 1) {
    const next = [at];
    for (let index = 1; index <= other.length; index += 1) {
      const change = (row[index - 1] ?? 0) + (one[at - 1] === other[index - 1] ? 0 : 1);
      next.push(Math.min(change, (row[index] ?? 0) + 1, (next[index - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
