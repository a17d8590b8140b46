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
  return {
    text: texts.map((text, index) => text + (parts[index]?.text ?? "")).join(""),
    values: parts.flatMap(({ values }) => values),
  };
}

export function joined(parts: readonly Sql[], separator = ", "): Sql {
  return {
    text: parts.map(({ text }) => text).join(separator),
    values: parts.flatMap(({ values }) => values),
  };
}
