const [quote, comma, backslash] = [0x22, 0x2c, 0x5c];
const [openingBracket, closingBracket] = [0x5b, 0x5d];
const [openingBrace, closingBrace] = [0x7b, 0x7d];
const space = 0x20;

/** The text of each element of the member `events`. The parser must have taken `json`: it is an object with such an array, once. */
export function* eventTexts(json: string): Generator<string, undefined> {
  const scanner = new Scanner(json);
  for (const name of scanner.members()) {
    if (name === "events") yield* scanner.elements();
    else scanner.value();
  }
}

/** Walks along a JSON text that is valid. */
class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** The names of an object's members; the caller takes each value before the next name. */
  *members(): Generator<string> {
    for (this.#enter(); this.#code !== closingBrace; this.#leaveItem()) {
      // A name may have escapes.
      const name: unknown = JSON.parse(this.value());
      this.#enter();
      yield String(name);
    }
  }

  /** The texts of an array's elements. */
  *elements(): Generator<string> {
    for (this.#enter(); this.#code !== closingBracket; this.#leaveItem()) yield this.value();
    this.#at += 1;
  }

  /** The text of the value that begins here, without the space around it. */
  value(): string {
    const start = this.#at;
    let depth = 0;
    for (; this.#at < this.#text.length; this.#at += 1) {
      const code = this.#code;
      if (code === quote) this.#toStringEnd();
      else if (code === openingBrace || code === openingBracket) depth += 1;
      else if (depth > 0 && (code === closingBrace || code === closingBracket)) depth -= 1;
      // Of a number or a word: up to what follows it.
      else if (depth > 0 || !this.#isAfterScalar(code)) continue;
      else break;
      if (depth > 0) continue;
      this.#at += 1;
      break;
    }
    return this.#text.slice(start, this.#at);
  }

  get #code(): number {
    return this.#text.charCodeAt(this.#at);
  }

  #isAfterScalar(code: number): boolean {
    return code <= space || code === comma || code === closingBrace || code === closingBracket;
  }

  #toStringEnd(): void {
    for (this.#at += 1; this.#code !== quote; this.#at += 1) if (this.#code === backslash) this.#at += 1;
  }

  /** Behind a bracket or colon, with the space on both sides. */
  #enter(): void {
    this.#skipSpace();
    this.#at += 1;
    this.#skipSpace();
  }

  /** Behind the comma after a value, if there is one. */
  #leaveItem(): void {
    this.#skipSpace();
    if (this.#code === comma) this.#enter();
  }

  #skipSpace(): void {
    while (this.#code <= space) this.#at += 1;
  }
}

/** The text of a webhook whose events are read. It is cut as far as somebody asks: a large one would block the event loop. */
export class EventSource {
  readonly #scan: Generator<string, undefined>;
  readonly #texts: string[] = [];

  constructor(json: string) {
    this.#scan = eventTexts(json);
  }

  keep(event: object, index: number): void {
    origins.set(event, { source: this, index });
  }

  at(index: number): string | undefined {
    while (this.#texts.length <= index) {
      const { value } = this.#scan.next();
      if (value === undefined) break;
      this.#texts.push(value);
    }
    return this.#texts[index];
  }
}

const origins = new WeakMap<object, { readonly source: EventSource; readonly index: number }>();

/** Throws a TypeError for an event that parseWebhookEnvelope() did not make. */
export function assertReceived(event: object): void {
  if (!origins.has(event)) throw unknownText();
}

/** The event's own text as it was received. Throws as {@link assertReceived}. */
export function receivedText(event: object): string {
  const origin = origins.get(event);
  const text = origin?.source.at(origin.index);
  if (text === undefined) throw unknownText();
  return text;
}

function unknownText(): TypeError {
  return new TypeError("the event's text is not known: give the envelope that parseWebhookEnvelope() made");
}
