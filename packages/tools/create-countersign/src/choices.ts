/** What can be chosen, with the names that people know; the first of each is the default. */
export const choices = {
  framework: { express: "Express", fastify: "Fastify" },
  store: { sqlite: "SQLite", postgres: "PostgreSQL" },
} as const;

export type Question = keyof typeof choices;

/** A platform of somebody's choice. */
export interface Choices {
  readonly framework: keyof typeof choices.framework;
  readonly store: keyof typeof choices.store;
}

export const defaults: Choices = { framework: "express", store: "sqlite" };

/** The folder of who names none. */
export const defaultFolder = "payout-platform";

/** Whether a question can be answered so. */
export function isChoice<Asked extends Question>(question: Asked, value: unknown): value is Choices[Asked] {
  const names: readonly unknown[] = Object.keys(choices[question]);
  return names.includes(value);
}
