import { optionError } from "@countersign/guard";

const scopeForm = /^[a-z0-9][a-z0-9_-]{0,31}$/;

// Whether the guard that was given this store first had a scope.
const stores = new WeakMap<object, boolean>();

/**
 * Checks the scope of a guard and that guards of one store have one each: without it `/refunds` would answer 409 to the key of a
 * payout, and never run. Two guards of the same scope share their keys because they say so.
 */
export function checkScope(factory: string, scope: string | undefined, store: object): void {
  if (scope !== undefined && !(typeof scope === "string" && scopeForm.test(scope))) {
    throw optionError(factory, "scope", "1 to 32 lower-case letters, digits, - and _", scope);
  }
  const first = stores.get(store);
  if (first === undefined) stores.set(store, scope !== undefined);
  else if (!first || scope === undefined) {
    throw new TypeError(
      `${factory}: this store was given to another guard already, and their keys would be the same; ` +
        'give each of them an option scope, for example scope: "payout" and scope: "refund"',
    );
  }
}

/** The key as the store keeps it. No scope holds a colon, so no two of them have a key in common. */
export function storedKey(scope: string | undefined, key: string): string {
  return scope === undefined ? key : `${scope}:${key}`;
}
