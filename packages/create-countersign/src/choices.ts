/** What can be chosen, with the names that people know; the first of each is the default. */
export const choices = {
  framework: { express: "Express", fastify: "Fastify" },
  store: {
    sqlite: "SQLite",
    postgres: "PostgreSQL",
    redis: "Redis for the nonces, PostgreSQL for the rest",
  },
  language: { ts: "TypeScript", js: "JavaScript" },
} as const;

export type Question = keyof typeof choices;

export type Framework = keyof typeof choices.framework;
export type Store = keyof typeof choices.store;
export type Language = keyof typeof choices.language;

/** A platform of somebody's choice. */
export interface Choices {
  readonly framework: Framework;
  readonly store: Store;
  readonly language: Language;
}

export const defaults: Choices = { framework: "express", store: "sqlite", language: "ts" };

/** The folder of who names none. */
export const defaultFolder = "payout-platform";

/** The value, when it is one that can be chosen. */
export function choiceOf<Asked extends Question>(
  question: Asked,
  value: string | undefined,
): Choices[Asked] | undefined {
  const names: readonly string[] = Object.keys(choices[question]);
  // The names of the table are the values of the type.
  return names.includes(value ?? "") ? (value as Choices[Asked]) : undefined;
}
