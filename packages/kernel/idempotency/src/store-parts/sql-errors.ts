const longestChain = 6;

/** An error and those that it wraps, outermost first: ORMs keep the driver's error under various names. */
export function wrappedErrors(error: unknown): readonly object[] {
  const found: object[] = [];
  const add = (candidate: unknown): void => {
    if (typeof candidate !== "object" || candidate === null) return;
    if (found.includes(candidate) || found.length >= longestChain) return;
    found.push(candidate);
    for (const name of wrappers) add(Reflect.get(candidate, name));
  };
  add(error);
  return found;
}

const wrappers = ["cause", "driverError", "original", "parent", "previous", "meta", "driverAdapterError"];
