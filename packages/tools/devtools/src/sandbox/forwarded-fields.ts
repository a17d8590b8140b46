import { isIP } from "node:net";

/**
 * The header fields by which a proxy that ends TLS tells the platform who called, and that it was over https; none without an address.
 * Throws a TypeError for what is not an IP address.
 */
export function forwardedFields(address: string | undefined): Readonly<Record<string, string>> {
  if (address === undefined) return {};
  if (isIP(address) === 0) throw new TypeError("forwardedFor must be an IP address");
  return { "X-Forwarded-For": address, "X-Forwarded-Proto": "https" };
}
