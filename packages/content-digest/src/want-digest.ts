import { MessageSignatureError, parseDictionary, type Member } from "@countersign/http-message-signatures";
import { isDigestAlgorithm, type DigestAlgorithm } from "./content-digest-field.ts";

/**
 * The algorithm that a peer prefers of those `offered`, by the lines of its Want-Content-Digest or Want-Repr-Digest field (RFC 9530
 * section 4); of equal ones the first offered. Undefined when it wants none of them. A field that is malformed is a wish that nobody
 * can read: undefined as well.
 */
export function preferredDigestAlgorithm(
  lines: readonly string[],
  offered: readonly DigestAlgorithm[] = ["sha-256", "sha-512"],
): DigestAlgorithm | undefined {
  const wanted = parseWanted(lines);
  let preferred: DigestAlgorithm | undefined;
  for (const algorithm of offered.filter(isDigestAlgorithm)) {
    const weight = wanted.get(algorithm) ?? 0;
    if (weight > (preferred === undefined ? 0 : (wanted.get(preferred) ?? 0))) preferred = algorithm;
  }
  return preferred;
}

function parseWanted(lines: readonly string[]): ReadonlyMap<string, number> {
  const wanted = new Map<string, number>();
  try {
    for (const [algorithm, member] of parseDictionary(lines.join(", "), "Want-Content-Digest")) {
      const weight = weightOf(member);
      if (weight === undefined) return new Map();
      wanted.set(algorithm, weight);
    }
  } catch (error) {
    if (!(error instanceof MessageSignatureError)) throw error;
    return new Map();
  }
  return wanted;
}

// An integer from 0, not acceptable, to 10, most preferred.
function weightOf(member: Member): number | undefined {
  if (!("item" in member) || member.item.type !== "integer") return undefined;
  const { value } = member.item;
  return value >= 0 && value <= 10 ? value : undefined;
}
