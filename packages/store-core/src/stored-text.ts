// NUL: some drivers cut a text at the first one, PostgreSQL refuses it. A lone surrogate: drivers send U+FFFD for it, so that two
// different keys would become one and the second payment would be answered as already made.
const unsafeToStore = /[\\\0\p{Surrogate}]/u;

/**
 * The text as stored: unchanged unless it holds a backslash, a NUL or a lone surrogate, otherwise escaped as in JSON. Different
 * strings stay different, because only escaped ones hold a backslash.
 */
export function encodeText(text: string): string {
  return unsafeToStore.test(text) ? JSON.stringify(text).slice(1, -1) : text;
}

/** The inverse of {@link encodeText}. */
export function decodeText(stored: string): string {
  return stored.includes("\\") ? String(JSON.parse(`"${stored}"`)) : stored;
}
