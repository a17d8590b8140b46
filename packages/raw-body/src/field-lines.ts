import type { GuardRequest } from "@countersign/guard";

/**
 * The values of every line of one header field, in the order received. `name` is in lower case.
 * `req.headers` would keep the first of two Content-Type lines and hide the second.
 */
export function fieldLines(req: GuardRequest, name: string): readonly string[] {
  const { rawHeaders } = req;
  const lines: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const candidate = rawHeaders[index];
    if (candidate?.length === name.length && candidate.toLowerCase() === name) {
      lines.push(rawHeaders[index + 1] ?? "");
    }
  }
  return lines;
}
