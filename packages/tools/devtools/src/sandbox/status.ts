const pattern = /^[1-5](?:[0-9]{2}|xx)$/;

/** What a payout's answers mean, and which are expected. */
export const statuses = {
  explain: explainStatus,
  matches: matchesStatus,
  parsePatterns: parseStatusPatterns,
};

/** Reads a comma list such as `200,409` or `2xx`; undefined when it is none. */
export function parseStatusPatterns(text: string): readonly string[] | undefined {
  const patterns = text.split(",").map((part) => part.trim());
  return patterns.every((part) => pattern.test(part)) ? patterns : undefined;
}

export function matchesStatus(status: number, patterns: readonly string[]): boolean {
  const text = String(status);
  return patterns.some((part) => part === text || (part.endsWith("xx") && part.charAt(0) === text.charAt(0)));
}

// By status and code where the code says more, by status, and by its hundred.
const meanings: ReadonlyMap<string, string> = new Map([
  ["409 idempotency-key-reused", "not paid: this idempotency_key is done, and not with this payload"],
  ["409 in-flight", "in doubt: the first attempt at this idempotency_key still runs; retry later"],
  [
    "503 held",
    "held: an operator of the platform decides whether it was paid; retries pay nothing until then",
  ],
  [
    "400",
    "validation error: the instruction itself is refused, for example an IBAN of no registered business",
  ],
  ["401", "refused: signature, digest, time, nonce, keyid or IP address; the answer does not say which"],
  ["404", "no payout endpoint at this path"],
  ["409", "already processed: this idempotency_key was paid before, and no second payment is executed"],
  ["413", "the body is larger than the platform accepts"],
  ["415", "the media type or content encoding of the body is not accepted"],
  ["503", "in doubt: retry later with the same idempotency_key and a fresh nonce"],
  ["2xx", "acknowledged: the platform will process the payment"],
  ["3xx", "a redirect, which a signed request does not follow"],
  ["5xx", "a fault of the platform: whether it paid is unknown; retry with the same idempotency_key"],
]);

/** What a status, and the code in the answer's body, tell the sender. */
export function explainStatus(status: number, body: string = ""): string {
  const keys = [`${status} ${codeIn(body)}`, `${status}`, `${String(status).charAt(0)}xx`];
  const known = keys.find((key) => meanings.has(key)) ?? "";
  return meanings.get(known) ?? "no status that the payout interface knows";
}

function codeIn(body: string): string {
  try {
    return String(Object(JSON.parse(body)).code);
  } catch {
    return "none";
  }
}
