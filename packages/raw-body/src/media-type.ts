const jsonInUtf8 = /^application\/json(?:[ \t]*;[ \t]*charset=(?:utf-8|"utf-8"))?$/i;

/**
 * Whether the Content-Type lines of a request say JSON in UTF-8: exactly one line, `application/json`, no parameter but
 * `charset=utf-8`. Two values, or another charset, would let two readers of one body disagree.
 */
export function isJsonMediaType(contentTypeLines: readonly string[]): boolean {
  const [contentType] = contentTypeLines;
  return contentTypeLines.length === 1 && contentType !== undefined && jsonInUtf8.test(contentType);
}
