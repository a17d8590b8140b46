/** What a peer can make of a text: every encoding by its own few lines, which share nothing with what is tested. */
export const encodings: ReadonlyMap<string, (text: string) => string> = new Map([
  ["JSON", (text) => JSON.stringify(text).slice(1, -1)],
  [
    "JSON with escaped slashes",
    (text) =>
      JSON.stringify(text)
        .slice(1, -1)
        .replaceAll("/", String.raw`\/`),
  ],
  ["JSON of escapes alone", (text) => units(text, (hex) => `\\u${hex.padStart(4, "0")}`)],
  [
    "JSON of escapes in upper case",
    (text) => units(text, (hex) => `\\u${hex.padStart(4, "0").toUpperCase()}`),
  ],
  [
    "JSON of every second unit",
    (text) =>
      units(text, (hex, unit, at) =>
        at % 2 === 0 || /["\\\p{Cc}\p{Cs}]/u.test(unit) ? `\\u${hex.padStart(4, "0")}` : unit,
      ),
  ],
  ["percent-encoded", (text) => encodeURIComponent(text)],
  [
    "percent-encoded in lower case",
    (text) => encodeURIComponent(text).replaceAll(/%../g, (hex) => hex.toLowerCase()),
  ],
  ["percent-encoded to the last byte", (text) => hexOf(text).replaceAll(/../g, "%$&")],
  ["of a form", (text) => new URLSearchParams([["", text]]).toString().slice(1)],
  ["hex", hexOf],
  ["hex in upper case", (text) => hexOf(text).toUpperCase()],
  [
    "hex in both cases",
    (text) =>
      hexOf(text).replaceAll(/..(?=..)/g, (hex, at: number) => (at % 4 === 0 ? hex.toUpperCase() : hex)),
  ],
  ["base64", (text) => base64Of(text)],
  ["base64 without padding", (text) => base64Of(text).replace(/=+$/, "")],
  ["base64url", (text) => Buffer.from(text, "utf8").toString("base64url")],
  ["base64 in lines", (text) => base64Of(text).replaceAll(/.{8}(?=.)/g, "$&\r\n")],
  ["read as latin1", (text) => Buffer.from(text, "utf8").toString("latin1")],
]);

function base64Of(text: string): string {
  return Buffer.from(text, "utf8").toString("base64");
}

function hexOf(text: string): string {
  return Buffer.from(text, "utf8").toString("hex");
}

function units(text: string, write: (hex: string, unit: string, at: number) => string): string {
  return Array.from({ length: text.length }, (_, at) => {
    const unit = text.charAt(at);
    return write(unit.charCodeAt(0).toString(16), unit, at);
  }).join("");
}

/** Everything that a reader could make of a text by hand, up to so many decodings in one another. */
export function readings(text: string, depth: number): readonly string[] {
  if (depth === 0) return [text];
  const decoded = decodings
    .flatMap((decode) => decode(text))
    .filter((each) => each.length >= 4 && each !== text);
  return [text, ...[...new Set(decoded)].flatMap((each) => readings(each, depth - 1))];
}

const decodings: readonly ((text: string) => readonly string[])[] = [
  (text) => (text.includes("\\") ? [text.replaceAll(/\\(?:u([\da-f]{4})|(.))/gi, unescaped)] : []),
  (text) => (text.includes("%") ? [unpercented(text)] : []),
  (text) => (text.includes("+") ? [unpercented(text.replaceAll("+", " "))] : []),
  (text) =>
    /[\u00c2-\u00f4][\u0080-\u00bf]/.test(text) ? [Buffer.from(text, "latin1").toString("utf8")] : [],
  (text) =>
    [...text.matchAll(/[\da-f]{8,}/gi)].flatMap(([run]) =>
      [0, 1].map((at) => Buffer.from(run.slice(at), "hex").toString("utf8")),
    ),
  (text) =>
    [...text.replaceAll(/\s/g, "").matchAll(/[\w+/-]{6,}/g)].flatMap(([run]) =>
      [0, 1, 2, 3].map((at) => Buffer.from(run.slice(at), "base64").toString("utf8")),
    ),
];

function unescaped(_all: string, hex: string | undefined, letter: string | undefined): string {
  if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16));
  const at = "bfnrt".indexOf(letter ?? "");
  return at === -1 ? (letter ?? "") : "\b\f\n\r\t".charAt(at);
}

function unpercented(text: string): string {
  return Buffer.from(
    Buffer.from(text, "utf8")
      .toString("latin1")
      .replaceAll(/%([\da-f]{2})/gi, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    "latin1",
  ).toString("utf8");
}
