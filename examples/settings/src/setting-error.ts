import { quoteForLog } from "@countersign/core";

/** A value of the environment that the platform cannot start with. The message is one line that names the variable. */
export class SettingError extends Error {
  readonly variable: string;

  constructor(variable: string, expected: string, got?: string) {
    super(`${variable}: expected ${expected}${got === undefined ? "" : `, got ${quoteForLog(got)}`}`);
    this.name = "SettingError";
    this.variable = variable;
  }
}

/** The first line of an error's message, for the end of a SettingError. */
export function reasonOf(error: unknown): string {
  const message = typeof error === "object" && error !== null && "message" in error ? error.message : error;
  return String(message).split("\n", 1)[0] ?? "";
}
