/** Bounds a label's values: the first `max` texts stay, others become `other`. Unbounded, callers' texts would fill the memory. */
export function boundedLabel(max: number): (text: string) => string {
  const known = new Set<string>();
  return (text) => {
    if (known.has(text)) return text;
    if (known.size >= max) return "other";
    known.add(text);
    return text;
  };
}
