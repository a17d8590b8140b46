import { SqlReader, type SqlGrammar, type SqlToken } from "./sql-reader.ts";

const ending = "the transaction commits when the handler returns, and rolls back when it throws";
const unreadable =
  "this text cannot be read for certain; send one statement that begins with its own word, or use another connection";

/**
 * Why a handler's transaction does not take this text; undefined if it does. It takes no text that ends the transaction, or that could hide
 * one: what comes after it would commit without the key. Of several statements each is looked at.
 */
export function refusedText(dialect: SqlGrammar, text: string): string | undefined {
  const reader = new SqlReader(dialect, text);
  for (;;) {
    while (reader.isAt(";")) reader.take();
    if (reader.peek() === undefined) return undefined;
    const reason = rules[dialect](reader);
    if (reason !== undefined) return reason;
    if (reader.isLast) return undefined;
    if (!skipStatement(reader)) return unreadable;
  }
}

/** Why a statement is refused whose text is not known. */
export const withoutText = "a statement whose text cannot be read is not sent; give its text";

const rules: Readonly<Record<SqlGrammar, (reader: SqlReader) => string | undefined>> = {
  postgresql: onPostgresql,
  mysql: onMysql,
  sqlite: onSqlite,
};

function onPostgresql(reader: SqlReader): string | undefined {
  const word = reader.peekWord();
  switch (word) {
    case "COMMIT":
    case "END":
    case "ABORT":
    case "BEGIN":
    case "START":
      return notTheHandlers(word);
    case "PREPARE":
      reader.take();
      return reader.peekWord() === "TRANSACTION" ? notTheHandlers("PREPARE TRANSACTION") : undefined;
    default:
      return onSavepoints(reader);
  }
}

function onSqlite(reader: SqlReader): string | undefined {
  const word = reader.peekWord();
  switch (word) {
    case "COMMIT":
    case "END":
    case "BEGIN":
      return notTheHandlers(word);
    case "CREATE":
      reader.take();
      reader.takeWord("TEMP", "TEMPORARY");
      return reader.takeWord("TRIGGER") === undefined ? undefined : pastTrigger(reader);
    default:
      return onSavepoints(reader);
  }
}

/** The statements of a trigger cannot end a transaction; END ends the trigger. */
function pastTrigger(reader: SqlReader): string | undefined {
  while (skipStatement(reader)) {
    while (reader.isAt(";")) reader.take();
    if (reader.peek() === undefined || reader.takeWord("END") !== undefined) return undefined;
  }
  return unreadable;
}

/** They commit nothing, whatever follows. A procedure that is called can. */
const plainOnMysql: ReadonlySet<string> = new Set([
  "CALL",
  "DELETE",
  "DESC",
  "DESCRIBE",
  "DO",
  "EXPLAIN",
  "GET",
  "HANDLER",
  "HELP",
  "INSERT",
  "KILL",
  "REPLACE",
  "SELECT",
  "SHOW",
  "SIGNAL",
  "TABLE",
  "UPDATE",
  "USE",
  "VALUES",
  "WITH",
]);

/** MySQL and MariaDB commit at many statements, and have several that hide others: those that are known to commit nothing are listed. */
function onMysql(reader: SqlReader): string | undefined {
  while (reader.isAt("(")) reader.take();
  const word = reader.peekWord();
  if (word === undefined) return unreadable;
  if (plainOnMysql.has(word)) return undefined;
  switch (word) {
    case "COMMIT":
    case "BEGIN":
    case "START":
      return notTheHandlers(word);
    case "ROLLBACK":
    case "RELEASE":
    case "SAVEPOINT":
      return onSavepoints(reader);
    case "SET":
      reader.take();
      return onSet(reader);
    case "ANALYZE":
      return unlessBefore(reader, ["SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE", "WITH", "FORMAT"]);
    case "LOAD":
      return unlessBefore(reader, ["DATA", "XML"]);
    case "CREATE":
    case "DROP":
      return onTemporary(reader, word);
    default:
      return commits(reader);
  }
}

function onTemporary(reader: SqlReader, word: string): string | undefined {
  reader.take();
  const words = [word];
  if (reader.takeWord("OR") !== undefined) words.push("OR", reader.takeWord("REPLACE") ?? "");
  if (reader.takeWord("TEMPORARY") === undefined) return commits(reader, words);
  return reader.takeWord("TABLE") === undefined ? commits(reader, [...words, "TEMPORARY"]) : undefined;
}

function unlessBefore(reader: SqlReader, words: readonly string[]): string | undefined {
  const first = reader.peekWord() ?? "";
  reader.take();
  return reader.takeWord(...words) === undefined ? commits(reader, [first]) : undefined;
}

/** SET autocommit = 1 commits, as SET PASSWORD and SET DEFAULT ROLE do. SET STATEMENT ... FOR has another statement behind it. */
function onSet(reader: SqlReader): string | undefined {
  if (["PASSWORD", "DEFAULT", "RESOURCE"].includes(reader.peekWord() ?? "")) return commits(reader, ["SET"]);
  const isStatement = reader.takeWord("STATEMENT") !== undefined;
  let before: SqlToken | undefined;
  let depth = 0;
  for (let token = reader.peek(); token !== undefined; token = reader.peek()) {
    if (token.kind === "versioned" || token.kind === "unread") return unreadable;
    if (token.kind === "mark") {
      if (token.text === ";") break;
      if (token.text === "(") depth += 1;
      if (token.text === ")") depth -= 1;
      if (token.text === "=" && before?.text === "?") return unreadable;
      if (token.text === "=" && before?.text.toUpperCase() === "AUTOCOMMIT")
        return notTheHandlers("SET autocommit");
    }
    reader.take();
    if (isStatement && depth === 0 && token.kind === "word" && token.text.toUpperCase() === "FOR")
      return onMysql(reader);
    // Also in `autocommit := 1`.
    if (token.text !== ":") before = token;
  }
  return isStatement ? unreadable : undefined;
}

/** The handler's own savepoints are its own: the nested transactions of libraries go by them. Ours is not. */
function onSavepoints(reader: SqlReader): string | undefined {
  const word = reader.takeWord("ROLLBACK", "RELEASE", "SAVEPOINT");
  if (word === undefined) return reader.peek()?.kind === "unread" ? unreadable : undefined;
  if (word === "ROLLBACK") {
    reader.takeWord("WORK", "TRANSACTION");
    if (reader.takeWord("TO") === undefined) return notTheHandlers("ROLLBACK");
  }
  if (word !== "SAVEPOINT") reader.takeWord("SAVEPOINT");
  const name = reader.take();
  if (name === undefined || (name.kind !== "word" && name.kind !== "quoted")) return unreadable;
  // Of U&"\0063ountersign".
  const isEscaped = name.text.includes("\\") || (name.text.toUpperCase() === "U" && reader.isAt("&"));
  if (isEscaped) return unreadable;
  if (!name.text.toLowerCase().startsWith("countersign")) return undefined;
  return `the savepoint ${name.text} is not the handler's; give savepoints other names`;
}

function notTheHandlers(words: string): string {
  return `${words} is not the handler's: ${ending}`;
}

/** With the next word, for the message. */
function commits(reader: SqlReader, words: readonly string[] = []): string {
  const more: string[] = [];
  for (
    let word = reader.peekWord();
    word !== undefined && more.length < 2 - words.length;
    word = reader.peekWord()
  ) {
    more.push(word);
    reader.take();
  }
  const all = [...words, ...more].join(" ");
  return `${all} is not known to leave the handler's transaction open on MySQL and MariaDB; send it by another connection`;
}

/** Goes to the semicolon behind the statement, or to the end. False where the way there cannot be read. */
function skipStatement(reader: SqlReader): boolean {
  for (let token = reader.peek(); token !== undefined; token = reader.peek()) {
    if (token.kind === "unread") return false;
    if (token.kind === "mark" && token.text === ";") return true;
    reader.take();
  }
  return true;
}
