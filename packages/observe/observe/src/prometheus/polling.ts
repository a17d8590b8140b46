import { inTime, optionError, warnOfError, type OptionOwner } from "@countersign/core/internal";

/** A rule for an option that names stores, each of which has `method`. */
export function storesWith<Store>(
  method: keyof Store & string,
  expected: string,
): (given: unknown, owner: OptionOwner, name: string) => Readonly<Record<string, Store>> {
  const areStores = (given: unknown): given is Readonly<Record<string, Store>> =>
    typeof given === "object" &&
    given !== null &&
    Object.values(given).every((store) => typeof Object(store)[method] === "function");
  return (given, owner, name) => {
    if (given === undefined) return {};
    if (areStores(given)) return { ...given };
    throw optionError(owner, name, `an object of ${expected}, by a name each`, given);
  };
}

// Shorter than a scrape may take by default.
const timeoutMs = 5_000;

/** What each store answers, by its name. One that fails or is late is left out, with a process warning. */
export async function answersOf<Store, Answer>(
  factoryName: string,
  what: string,
  stores: Readonly<Record<string, Store>>,
  ask: (store: Store) => Promise<Answer>,
): Promise<ReadonlyMap<string, Answer>> {
  const answers = new Map<string, Answer>();
  await Promise.all(
    Object.entries(stores).map(async ([name, store]) => {
      try {
        answers.set(name, await inTime(ask(store), timeoutMs, late));
      } catch (error) {
        warnOfError(factoryName, `could not ${what} of ${name}`, error);
      }
    }),
  );
  return answers;
}

function late(): Error {
  return new Error(`the store did not answer within ${timeoutMs} ms`);
}
