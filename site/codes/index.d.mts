/** By code: makes it happen, and gives what the packages said. */
export const provocations: Readonly<
  Record<string, () => Promise<{ readonly code: string; readonly status?: number; readonly text: string }>>
>;
