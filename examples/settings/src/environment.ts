/** Environment variables, as in process.env. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Parses a variable that may be missing; an empty value is parsed, not taken for a missing one. */
export function optional<T>(
  variable: string,
  env: Environment,
  parse: (variable: string, text: string) => T,
): T | undefined {
  const text = env[variable];
  return text === undefined ? undefined : parse(variable, text);
}
