const byFault: Readonly<Record<string, readonly string[]>> = {
  "cut at a NUL, or refused": ["a\0b", "a\0c", "a", "\0", "\0\0"],
  "not in UTF-8: sent as U+FFFD": ["\ud800", "\ud801", "\udfff", "\udc00\ud800", "\ufffd"],
  "what an escape of the above looks like": ["a\\u0000b", "\\ud800", "\\0", "\\x00", "%00"],
  escapes: ["\\", "\\\\", '\\"', "\\'"],
  "members that objects have already": ["__proto__", "constructor", "toString", "hasOwnProperty"],
  SQL: ["'; DROP TABLE countersign_idempotency; --", "''", '"', "`", "%", "_", "$1", "?", ":key", "@key"],
  "comments and quotes of SQL": ["/* */", "$$"],
  "patterns of Redis": ["*", "?*[a-z]", "[^a]"],
  "hash tags of Redis, and its protocol": ["{a}b", "a{b}", "{}a", "\r\n$3\r\nDEL\r\n"],
  "separators of composed names": [":", "a:b", "a|b", "a/b", "a,b"],
  "equal under a normalisation or a collation": ["\u00e9", "e\u0301", "stra\u00dfe", "strasse", "\uff41"],
  "equal without case": ["key", "KEY", "Key", "\u212aey", "\u0131", "i"],
  "white space that is ignored or trimmed": [" ", "key ", " key", "key\t", "key\u00a0"],
  "characters that are ignored": ["key\u200b", "\ufeffkey", "\u202ekey"],
  lines: ["key\n", "key\r\n", "key\r", "key\u2028"],
  "taken for a number": ["1", "1.0", "01", "1e0", "0x1", "NaN"],
  "taken for another type": ["true", "null", "undefined", "[object Object]"],
  "beyond the basic plane": ["\u{1f4b8}", "\u{10ffff}"],
  "as long as a key may be, and different in the last character alone": [
    `${"x".repeat(511)}a`,
    `${"x".repeat(511)}b`,
    "\0".repeat(512),
    "\u{1f4b8}".repeat(256),
    "\ud800".repeat(512),
  ],
};

/** Texts of at most 512 characters that engines, drivers or object keys are known to change, cut, fold or interpret. */
export const hostileTexts: readonly string[] = Object.values(byFault).flat();

/** Two texts each that a store may take for one. */
export const mistakable: readonly (readonly [string, string])[] = [
  ["a", "A"],
  ["a", "a "],
  ["a", "a\0"],
  ["a\0b", "a\0c"],
  ["\u00e9", "e\u0301"],
  ["\ud800", "\ud801"],
  ["\ud800", "\ufffd"],
  ["1", "1.0"],
  ["\\u0000", "\0"],
  [`${"x".repeat(511)}a`, `${"x".repeat(511)}b`],
];

/** Two texts of 10 kB that differ in the last character alone. A store may refuse them, and must not cut them. */
export const oversized: readonly [string, string] = [`${"k".repeat(10_239)}a`, `${"k".repeat(10_239)}b`];

export function shown(text: unknown): string {
  const quoted = JSON.stringify(text);
  return quoted.length > 60 ? `${quoted.slice(0, 60)}... (${quoted.length} characters)` : quoted;
}
