export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Texts that are sent as they were typed. */
export const jsonTexts = { isObject: isObjectText, write: jsonWithTexts };

export function isObjectText(text: string): boolean {
  try {
    return isObject(JSON.parse(text));
  } catch {
    return false;
  }
}

/** Writes the members in `texts` byte for byte, the others as JSON: a number parsed and written again may change (10.10 to 10.1). */
export function jsonWithTexts(value: object, texts: Readonly<Record<string, string>>): string {
  const members = Object.entries(value).map(([name, member]) => {
    const text = Object.hasOwn(texts, name) ? texts[name] : JSON.stringify(member);
    return `${JSON.stringify(name)}:${text}`;
  });
  return `{${members.join(",")}}`;
}
