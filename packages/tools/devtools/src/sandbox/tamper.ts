export const tamperedParts = ["body", "digest", "signature", "path"] as const;

/** What is changed after signing; `path` signs another path than the one that is sent. */
export type TamperedPart = (typeof tamperedParts)[number];

/** Changes one byte so that JSON stays JSON (a digit up by one, else a space added): only a comparison of the bytes shows it. */
export function tamperBody(body: Buffer): Buffer {
  const index = lastDigitBelowNine(body);
  if (index === -1) return Buffer.concat([body, Buffer.from(" ")]);
  const changed = Buffer.from(body);
  changed.writeUInt8(body.readUInt8(index) + 1, index);
  return changed;
}

function lastDigitBelowNine(body: Buffer): number {
  for (let index = body.length - 1; index >= 0; index -= 1) {
    const byte = body.readUInt8(index);
    if (byte >= 0x30 && byte <= 0x38) return index;
  }
  return -1;
}

/** Turns one bit of the first byte sequence; the base64 stays well-formed. */
export function tamperSignature(field: string): string {
  return field.replace(/:([A-Za-z0-9+/=]+):/, (_match, base64: string) => {
    const bytes = Buffer.from(base64, "base64");
    bytes.writeUInt8(bytes.readUInt8(0) ^ 1, 0);
    return `:${bytes.toString("base64")}:`;
  });
}

export function tamperPath(target: string): string {
  const [path = "", ...query] = target.split("?");
  return [path.endsWith("/") ? `${path}other` : `${path}/other`, ...query].join("?");
}
