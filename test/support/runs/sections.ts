const sections = ["addresses", "signature", "idempotency", "basicAuth", "hmac"] as const;
type Section = (typeof sections)[number];

/** Some options of an endpoint; of a section, single ones. */
export type Overrides<Options> = {
  readonly [Name in keyof Options]?: Name extends Section ? Partial<Options[Name]> : Options[Name];
};

/** The options of `base` with those of `overrides` in their place; what a section has otherwise stays. */
export function withOverrides<Options extends object>(base: Options, overrides: Overrides<Options>): Options {
  const merged = sections
    .filter((name) => isObject(Reflect.get(base, name)) && isObject(Reflect.get(overrides, name)))
    .map((name) => [name, { ...Reflect.get(base, name), ...Reflect.get(overrides, name) }]);
  return { ...base, ...overrides, ...Object.fromEntries(merged) };
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
