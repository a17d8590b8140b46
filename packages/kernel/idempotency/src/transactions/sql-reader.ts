/** Of the engine that reads the text. */
export type SqlGrammar = "postgresql" | "mysql" | "sqlite";

export interface SqlToken {
  /**
   * `quoted`: a name or a value in quotes, without them. `mark`: any other sign. `versioned`: a comment that is code on some servers.
   * `unread`: where nobody can say for certain how the server reads on.
   */
  readonly kind: "word" | "quoted" | "mark" | "versioned" | "unread";
  readonly text: string;
}

interface Scanned extends SqlToken {
  readonly end: number;
}

/**
 * Reads a text as the engine's own lexer cuts it: into words, quotes and signs. It knows the defaults of the engines: backslashes are signs
 * like others on PostgreSQL (standard_conforming_strings), and escape on MySQL and MariaDB (no NO_BACKSLASH_ESCAPES).
 */
export class SqlReader {
  readonly #dialect: SqlGrammar;
  readonly #text: string;
  /** Behind the last sign that is neither blank nor a semicolon. */
  readonly #end: number;
  #at = 0;
  #next: Scanned | undefined;

  constructor(dialect: SqlGrammar, text: string) {
    this.#dialect = dialect;
    this.#text = text;
    let end = text.length;
    while (end > 0 && (isBlank(text.charCodeAt(end - 1)) || text[end - 1] === ";")) end -= 1;
    this.#end = end;
  }

  /** True if no other statement can follow: what is left has no semicolon but at its end. */
  get isLast(): boolean {
    const next = this.#text.indexOf(";", this.#at);
    return next === -1 || next >= this.#end;
  }

  /** The next token, which stays. Undefined at the end. */
  peek(): SqlToken | undefined {
    this.#next ??= this.#scan();
    return this.#next;
  }

  take(): SqlToken | undefined {
    const token = this.#next ?? this.#scan();
    this.#next = undefined;
    if (token !== undefined) this.#at = token.end;
    return token;
  }

  /** Takes the next token if it is one of these words. Returns it in capitals. */
  takeWord(...words: readonly string[]): string | undefined {
    const word = this.peekWord();
    if (word === undefined || !words.includes(word)) return undefined;
    this.take();
    return word;
  }

  /** The next token in capitals, if it is a word. */
  peekWord(): string | undefined {
    const token = this.peek();
    return token?.kind === "word" ? token.text.toUpperCase() : undefined;
  }

  /** True if the next token is this sign. */
  isAt(mark: string): boolean {
    const token = this.peek();
    return token?.kind === "mark" && token.text === mark;
  }

  #scan(): Scanned | undefined {
    const text = this.#text;
    let at = this.#at;
    while (at < text.length) {
      const past = this.#pastBlank(at);
      if (past === undefined) return unread(text, at);
      if (past === at) return this.#tokenAt(at);
      at = past;
    }
    return undefined;
  }

  /** Behind the blank or the comment that begins at `at`; `at` itself where none does. Undefined behind a comment without an end. */
  #pastBlank(at: number): number | undefined {
    const text = this.#text;
    const code = text.charCodeAt(at);
    if (isBlank(code)) return at + 1;
    // SQLite takes a mark of the byte order for a blank.
    if (code === 0xfeff && this.#dialect === "sqlite") return at + 1;
    if (text.startsWith("/*", at) && !this.#isVersioned(at)) return this.#pastComment(at);
    const isLine = text.startsWith("--", at)
      ? this.#isLineComment(at)
      : this.#dialect === "mysql" && code === 35;
    return isLine ? this.#pastLine(at) : at;
  }

  /** On MySQL and MariaDB two signs of minus begin a comment only before a blank, a control character or the end. */
  #isLineComment(at: number): boolean {
    if (this.#dialect !== "mysql") return true;
    const code = this.#text.charCodeAt(at + 2);
    return !(code > 32) || code === 127;
  }

  #pastLine(at: number): number {
    const text = this.#text;
    for (let end = at; end < text.length; end += 1) {
      if (text[end] === "\n" || (text[end] === "\r" && this.#dialect === "postgresql")) return end + 1;
    }
    return text.length;
  }

  /** Comments are nested on PostgreSQL alone. */
  #pastComment(at: number): number | undefined {
    const text = this.#text;
    let depth = 1;
    let end = at + 2;
    while (end < text.length) {
      if (text.startsWith("*/", end)) {
        depth -= 1;
        end += 2;
        if (depth === 0) return end;
      } else if (this.#dialect === "postgresql" && text.startsWith("/*", end)) {
        depth += 1;
        end += 2;
      } else end += 1;
    }
    return undefined;
  }

  #isVersioned(at: number): boolean {
    return (
      this.#dialect === "mysql" && (this.#text.startsWith("/*!", at) || this.#text.startsWith("/*M!", at))
    );
  }

  #tokenAt(at: number): Scanned {
    const text = this.#text;
    const sign = text[at] ?? "";
    const code = text.charCodeAt(at);
    if (isWordStart(code) || (sign === "$" && this.#dialect === "mysql")) return this.#wordAt(at);
    if (this.#isVersioned(at)) return versionedAt(text, at);
    if (sign === "'") return this.#quotedAt(at, this.#dialect === "mysql");
    if (sign === '"') return this.#quotedAt(at, this.#dialect === "mysql");
    if (sign === "`" && this.#dialect !== "postgresql") return this.#quotedAt(at, false);
    if (sign === "[" && this.#dialect === "sqlite") return upTo(text, at + 1, "]", at);
    if (sign === "$" && this.#dialect === "postgresql") return dollarQuotedAt(text, at);
    // What stands in the brackets of $name(...) is a part of the name on SQLite.
    if ("$@:#".includes(sign) && this.#dialect === "sqlite") {
      const end = pastName(text, at + 1);
      return text[end] === "(" && end > at + 1 ? unread(text, at) : { kind: "mark", text: sign, end };
    }
    if (code < 32 || code === 127) return unread(text, at);
    return { kind: "mark", text: sign, end: at + 1 };
  }

  #wordAt(at: number): Scanned {
    const text = this.#text;
    let end = at + 1;
    while (end < text.length && isWordPart(text.charCodeAt(end))) end += 1;
    const word = text.slice(at, end);
    if (this.#dialect !== "postgresql" || text[end] !== "'" || word.toUpperCase() !== "E") {
      return { kind: "word", text: word, end };
    }
    let quoted = this.#quotedAt(end, true);
    // It goes on behind a line feed, with its escapes.
    for (;;) {
      const next = this.#pastBlanks(quoted.end);
      if (quoted.kind !== "quoted" || next === undefined || text[next] !== "'") return quoted;
      quoted = this.#quotedAt(next, true);
    }
  }

  #pastBlanks(at: number): number | undefined {
    let end = at;
    while (end < this.#text.length) {
      const past = this.#pastBlank(end);
      if (past === undefined || past === end) return past;
      end = past;
    }
    return end;
  }

  /** A quote that is doubled stands for itself. */
  #quotedAt(at: number, escapes: boolean): Scanned {
    const text = this.#text;
    const quote = text[at];
    for (let end = at + 1; end < text.length; end += 1) {
      if (escapes && text[end] === "\\") end += 1;
      else if (text[end] === quote) {
        if (text[end + 1] !== quote) return { kind: "quoted", text: text.slice(at + 1, end), end: end + 1 };
        end += 1;
      }
    }
    return unread(text, at);
  }
}

function unread(text: string, at: number): Scanned {
  return { kind: "unread", text: text.slice(at, at + 1), end: text.length };
}

function upTo(text: string, from: number, mark: string, at: number): Scanned {
  const end = text.indexOf(mark, from);
  return end === -1
    ? unread(text, at)
    : { kind: "quoted", text: text.slice(from, end), end: end + mark.length };
}

/** `$tag$ ... $tag$`, or the sign of a parameter. */
function dollarQuotedAt(text: string, at: number): Scanned {
  let end = at + 1;
  while (end < text.length && text[end] !== "$" && isWordPart(text.charCodeAt(end))) end += 1;
  const isTag = text[end] === "$" && (end === at + 1 || isWordStart(text.charCodeAt(at + 1)));
  return isTag ? upTo(text, end + 1, text.slice(at, end + 1), at) : { kind: "mark", text: "$", end: at + 1 };
}

/** Whether the server takes it for code or for a comment, it has to end at the same place. */
function versionedAt(text: string, at: number): Scanned {
  const end = text.indexOf("*/", at + 2);
  const inside = text.slice(at + 3, end);
  if (end === -1 || ["'", '"', "`", ";", "#", "--", "/*"].some((mark) => inside.includes(mark))) {
    return unread(text, at);
  }
  return { kind: "versioned", text: inside, end: end + 2 };
}

function pastName(text: string, at: number): number {
  let end = at;
  while (end < text.length && (isWordPart(text.charCodeAt(end)) || text.startsWith("::", end))) {
    end += text[end] === ":" ? 2 : 1;
  }
  return end;
}

function isBlank(code: number): boolean {
  return code === 32 || (code >= 9 && code <= 13);
}

function isWordStart(code: number): boolean {
  return (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || code === 95 || code >= 128;
}

function isWordPart(code: number): boolean {
  return isWordStart(code) || (code >= 48 && code <= 57) || code === 36;
}
