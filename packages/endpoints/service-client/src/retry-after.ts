// The three forms that a recipient accepts (RFC 9110 section 5.6.7); V8 reads the last one in local time without a zone.
const imfFixdate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;
const rfc850Date = /^[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/;
const asctimeDate = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/;

/** Reads a Retry-After field into seconds from `nowMs`, 0 for a time gone by; undefined when it is neither of its forms. */
export function parseRetryAfter(value: string | null, nowMs: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d{1,9}$/.test(value)) return Number(value);
  const epochMs = parseHttpDate(value);
  return epochMs === undefined ? undefined : Math.max(0, Math.ceil((epochMs - nowMs) / 1000));
}

function parseHttpDate(value: string): number | undefined {
  const zoned = asctimeDate.test(value) ? `${value} GMT` : value;
  if (zoned === value && !imfFixdate.test(value) && !rfc850Date.test(value)) return undefined;
  const epochMs = Date.parse(zoned);
  return Number.isNaN(epochMs) ? undefined : epochMs;
}
