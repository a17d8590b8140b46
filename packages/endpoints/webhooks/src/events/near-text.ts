/** The candidate that most likely was meant by `text`: at most a third of the longer one differs. Undefined for none. */
export function nearest(text: string, candidates: readonly string[]): string | undefined {
  // Longer text is no slip of the fingers, and the distance takes the product of both lengths.
  if (text.length > 100) return undefined;
  let best: string | undefined;
  let bestDistance = Infinity;
  for (const candidate of candidates) {
    const distance = editDistance(text.toLowerCase(), candidate);
    if (distance >= bestDistance || distance > Math.max(text.length, candidate.length) / 3) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best;
}

/** How many characters have to be added, dropped or replaced (Levenshtein 1965). */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const kept = (previous[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1);
      current.push(Math.min(kept, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[to.length] ?? 0;
}
