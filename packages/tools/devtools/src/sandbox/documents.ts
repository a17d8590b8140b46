import type Database from "libsql";

/** The table of all documents, and its transactions. Two services on one database would not see each other's changes. */
export class DocumentStore {
  readonly #database: Database.Database;
  readonly #put: Database.Statement;
  readonly #remove: Database.Statement;
  #undo: (() => void)[] = [];

  /** Creates the table when it is missing. */
  constructor(database: Database.Database) {
    database.exec(`CREATE TABLE IF NOT EXISTS documents (
      kind TEXT NOT NULL,
      id   TEXT NOT NULL,
      json TEXT NOT NULL,
      PRIMARY KEY (kind, id)
    ) STRICT`);
    this.#database = database;
    this.#put = database.prepare(
      "INSERT INTO documents VALUES (:kind, :id, :json) ON CONFLICT (kind, id) DO UPDATE SET json = excluded.json",
    );
    this.#remove = database.prepare("DELETE FROM documents WHERE kind = :kind AND id = :id");
  }

  read(kind: string): readonly Readonly<Record<string, unknown>>[] {
    const all = "SELECT id, json FROM documents WHERE kind = :kind ORDER BY rowid";
    return this.#database
      .prepare(all)
      .all({ kind })
      .map((row) => Object(row));
  }

  /** Removes a document without `json`. `undo` is called if the transaction fails. */
  write(document: { kind: string; id: string; json: string | undefined }, undo: () => void): void {
    this.assertOpen();
    if (document.json === undefined) this.#remove.run(document);
    else this.#put.run(document);
    if (this.#database.inTransaction) this.#undo.push(undo);
  }

  /** Runs synchronous `work` in the open transaction, or in one of its own that takes the write lock at once. */
  atomically<T>(work: () => T): T {
    // The driver ends the whole process when a closed database is asked for its transaction.
    this.assertOpen();
    if (this.#database.inTransaction) return work();
    this.#undo = [];
    try {
      return this.#database.transaction(work).immediate();
    } catch (error) {
      for (let undo = this.#undo.pop(); undo !== undefined; undo = this.#undo.pop()) undo();
      throw error;
    }
  }

  assertOpen(): void {
    if (!this.#database.open) throw new Error("the database is closed, and so is the service on it");
  }
}

/** Documents of one kind, in memory as in the database. Every method throws once that is closed. */
export class Documents<Document extends object> {
  readonly #store: DocumentStore;
  readonly #kind: string;
  readonly #all = new Map<string, Document>();
  /** Those that have a rank, by it. */
  readonly sorted: Document[] = [];
  readonly #rankOf: (document: Document) => number | undefined;

  constructor(
    store: DocumentStore,
    kind: string,
    rankOf: (document: Document) => number | undefined = () => undefined,
  ) {
    this.#store = store;
    this.#kind = kind;
    this.#rankOf = rankOf;
    for (const { id, json } of store.read(kind)) this.#keep(String(id), JSON.parse(String(json)));
  }

  /** Oldest first. */
  get all(): ReadonlyMap<string, Document> {
    this.#store.assertOpen();
    return this.#all;
  }

  put(id: string, document: Document): void {
    this.#write(id, document);
  }

  remove(id: string): void {
    this.#write(id, undefined);
  }

  #write(id: string, document: Document | undefined): void {
    const before = this.#all.get(id);
    const json = document && JSON.stringify(document);
    this.#store.write({ kind: this.#kind, id, json }, () => this.#keep(id, before));
    this.#keep(id, document);
  }

  #keep(id: string, document: Document | undefined): void {
    const before = this.#all.get(id);
    const place = before === undefined ? -1 : this.sorted.indexOf(before);
    if (place !== -1) this.sorted.splice(place, 1);
    if (document === undefined) this.#all.delete(id);
    else this.#all.set(id, document);
    const rank = document && this.#rankOf(document);
    if (document !== undefined && rank !== undefined) this.sorted.splice(this.indexAfter(rank), 0, document);
  }

  /** Where those of a higher rank begin in `sorted`. */
  indexAfter(rank: number): number {
    let index = this.sorted.length;
    for (let last = this.sorted[index - 1]; last !== undefined; last = this.sorted[index - 1]) {
      if ((this.#rankOf(last) ?? 0) <= rank) break;
      index -= 1;
    }
    return index;
  }
}
