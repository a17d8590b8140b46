const digits = 21;

/** Text that sorts as the number does, by bytes: 21 digits, 10^20 above the nanoseconds since 1970. Covers the years 0 to 9999. */
export function sortableNanoseconds(at: bigint): string {
  return (at + 10n ** BigInt(digits - 1)).toString().padStart(digits, "0");
}
