export const tamperedParts = [
  ...(["body", "digest", "signature", "path"] as const),
  // Usual mistakes of signers, proxies and middlewares, which `countersign explain` names.
  ...([
    "prefix-removed",
    "prefix-added",
    "charset-added",
    "body-re-serialised",
    "created-milliseconds",
  ] as const),
] as const;

/**
 * What differs between the signed request and the one that is sent. `path`, `prefix-removed` and `prefix-added` sign another path;
 * `created-milliseconds` signs times of the wrong unit; the others change the request after signing.
 */
export type TamperedPart = (typeof tamperedParts)[number];

/** The body that is sent in place of the signed one. Throws a TypeError where `body-re-serialised` has no JSON. */
export function sentBodyOf(signed: Buffer, part: TamperedPart | "password" | undefined): Buffer {
  if (part === "body-re-serialised") return reserialised(signed);
  return part === "body" || part === "digest" ? tamperBody(signed) : signed;
}

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

/** The request target that is signed in place of the one that is sent. Throws a TypeError where `prefix-added` has no prefix to leave out. */
export function signedTargetOf(target: string, part: TamperedPart | undefined): string {
  const [path = "", ...query] = target.split("?");
  return [signedPathOf(path, part), ...query].join("?");
}

function signedPathOf(path: string, part: TamperedPart | undefined): string {
  if (part === "path") return path.endsWith("/") ? `${path}other` : `${path}/other`;
  if (part === "prefix-removed") return `/payments${path}`;
  if (part !== "prefix-added") return path;
  const [, , ...others] = path.split("/");
  if (path === "/") throw new TypeError("the path / has no prefix that a proxy may have added");
  return `/${others.join("/")}`;
}

/** The same JSON as other bytes, as of a middleware that parses a body and writes it again: without white space, or indented where it had none. */
function reserialised(body: Buffer): Buffer {
  const text = body.toString("utf8");
  const value = parsed(text);
  const compact = JSON.stringify(value);
  const forms = [compact, JSON.stringify(value, undefined, 2)];
  // A number or an empty object looks the same in both.
  return Buffer.from(forms.find((form) => form !== text) ?? `${compact}\n`, "utf8");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new TypeError("a body that is not JSON cannot be serialised again", { cause: error });
  }
}
