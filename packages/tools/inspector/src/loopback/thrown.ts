// Errors of Node itself are no `instanceof Error` of a vm context, so these ask for the members they need.

/** The `code` of a thrown value, such as ENOENT. */
export function codeOf(thrown: unknown): string {
  const code = isObject(thrown) && "code" in thrown ? thrown.code : undefined;
  return typeof code === "string" ? code : "no code";
}

/** The message of a thrown value. */
export function messageOf(thrown: unknown): string {
  const message = isObject(thrown) && "message" in thrown ? thrown.message : undefined;
  return typeof message === "string" ? message : String(thrown);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
