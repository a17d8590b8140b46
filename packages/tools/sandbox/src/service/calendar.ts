const dayMs = 86_400_000;

/**
 * Calendar days in UTC from the due date, `YYYY-MM-DD`, to the date of `now` in milliseconds since 1970: negative before the
 * due date, 0 on it.
 */
export function daysFromDueDate(dueDate: string, now: number): number {
  return Math.floor(now / dayMs) - Date.parse(`${dueDate}T00:00:00Z`) / dayMs;
}
