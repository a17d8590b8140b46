/** True for an object that is no list. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isObjectText(text: string): boolean {
  try {
    return isObject(JSON.parse(text));
  } catch {
    return false;
  }
}

/**
 * JSON of an object, in which the members named in `texts` are these texts, byte for byte. A number that is parsed and written again
 * is another text: 10.10 becomes 10.1.
 */
export function jsonWithTexts(value: object, texts: Readonly<Record<string, string>>): string {
  const members = Object.entries(value).map(([name, member]) => {
    const text = Object.hasOwn(texts, name) ? texts[name] : JSON.stringify(member);
    return `${JSON.stringify(name)}:${text}`;
  });
  return `{${members.join(",")}}`;
}
