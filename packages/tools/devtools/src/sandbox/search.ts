/** What a search looks into; `answers` are statuses, or errors in their place. */
export interface Searched {
  readonly texts: readonly string[];
  readonly answers: readonly (number | string | undefined)[];
}

/** Whether it holds the text, in any case; three digits are a status alone. */
export function isFoundBy(search: string, { texts, answers }: Searched): boolean {
  const wanted = search.trim().toLowerCase();
  if (/^[1-5]\d\d$/.test(wanted)) return answers.some((answer) => String(answer) === wanted);
  return [...texts, ...answers].some((text) => String(text).toLowerCase().includes(wanted));
}
