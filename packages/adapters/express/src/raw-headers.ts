import type { GuardResponse } from "./types.ts";

/** The fields that were set, then those of `writeHead(status, message?, fields?)`, which replace them. */
export function rawHeadersOf(res: GuardResponse, [message, fields]: readonly unknown[]): readonly string[] {
  const explicit = pairsOf(typeof message === "string" ? fields : (message ?? fields));
  const named = new Set(explicit.map(([name]) => name.toLowerCase()));
  const set = res
    .getHeaderNames()
    .filter((name) => !named.has(name))
    .map((name) => [name, res.getHeader(name)] as const);
  return [...set, ...explicit].flatMap(([name, value]) => linesOf(name, value));
}

function linesOf(name: string, value: unknown): readonly string[] {
  return [value]
    .flat()
    .flatMap((line: unknown) =>
      typeof line === "string" || typeof line === "number" ? [name, String(line)] : [],
    );
}

// Node takes { name: value }, [name, value, …] and [[name, value], …].
function pairsOf(fields: unknown): readonly (readonly [name: string, value: unknown])[] {
  if (!Array.isArray(fields)) return Object.entries(fields ?? {});
  if (fields.every((field) => Array.isArray(field))) {
    return fields.map(([name, value]: readonly unknown[]) => [String(name), value]);
  }
  return fields.flatMap((name: unknown, index) =>
    index % 2 === 0 ? [[String(name), fields[index + 1] as unknown] as const] : [],
  );
}
