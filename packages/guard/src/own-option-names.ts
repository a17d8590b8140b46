/** A middleware that an endpoint is made of: its factory's name, and the options that the endpoint calls otherwise. */
export interface ChainPart {
  readonly factory: string;
  readonly ownNames?: Readonly<Record<string, string>> | undefined;
}

/**
 * Runs `build` and rethrows its TypeError about an option under the name that the caller of `owner` has written:
 * `ipAllowlist: option allow[1] must be …` becomes `payoutEndpoint: option allowIps[1] must be …`. Keeps the original as cause.
 */
export function withOwnOptionNames<T>(owner: string, part: ChainPart, build: () => T): T {
  try {
    return build();
  } catch (error) {
    const prefix = `${part.factory}: `;
    if (!(error instanceof TypeError) || !error.message.startsWith(prefix)) throw error;
    const message = error.message
      .slice(prefix.length)
      .replace(
        /^option ([A-Za-z]+)/,
        (_match, option: string) => `option ${part.ownNames?.[option] ?? option}`,
      );
    throw new TypeError(`${owner}: ${message}`, { cause: error });
  }
}
