import type { SqlValue } from "@countersign/idempotency";

/** A part of a statement, with a value for each `?` in its text. */
export interface Sql {
  readonly text: string;
  readonly values: readonly SqlValue[];
}

/** A text without values. */
export function raw(text: string): Sql {
  return { text, values: [] };
}

/** A value. */
export function bound(value: SqlValue): Sql {
  return { text: "?", values: [value] };
}

/** Puts parts together. */
export function fragment(texts: TemplateStringsArray, ...parts: readonly Sql[]): Sql {
  let text = texts[0] ?? "";
  const values: SqlValue[] = [];
  let index = 0;
  for (const part of parts) {
    index += 1;
    text += part.text + (texts[index] ?? "");
    if (part.values.length > 0) values.push(...part.values);
  }
  return { text, values };
}

export function joined(parts: readonly Sql[], separator = ", "): Sql {
  let text = "";
  const values: SqlValue[] = [];
  for (const [index, part] of parts.entries()) {
    text += (index === 0 ? "" : separator) + part.text;
    for (const value of part.values) values.push(value);
  }
  return { text, values };
}
