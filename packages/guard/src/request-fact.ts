/**
 * Something that a guard knows of a request or response and that no other code can read, forge or overwrite. Trust decisions
 * read facts, never a property of the request, which every middleware can write.
 */
export interface RequestFact<T> {
  get(subject: object): T | undefined;
  set(subject: object, value: T): void;
  delete(subject: object): void;
}

// One entry for each request holds all facts: entries of WeakMaps cost time, and more in the garbage collector.
const records = new WeakMap<object, unknown[]>();
let count = 0;

/** Makes a {@link RequestFact}. */
export function createRequestFact<T>(): RequestFact<T> {
  const index = count++;
  return {
    get(subject) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only set() below writes at this index
      return records.get(subject)?.[index] as T | undefined;
    },
    set(subject, value) {
      const record = records.get(subject);
      if (record !== undefined) {
        record[index] = value;
        return;
      }
      const fresh: unknown[] = [];
      fresh[index] = value;
      records.set(subject, fresh);
    },
    delete(subject) {
      const record = records.get(subject);
      if (record !== undefined) record[index] = undefined;
    },
  };
}
