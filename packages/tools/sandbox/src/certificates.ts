import { X509Certificate } from "node:crypto";

/** Whether a value begins with a certificate; node:tls ignores one that holds none, and takes its default for an empty one. */
export function holdsCertificate(pem: unknown): pem is string | Buffer {
  if (typeof pem !== "string" && !Buffer.isBuffer(pem)) return false;
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}
