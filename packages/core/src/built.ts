import { channel, type Channel } from "node:diagnostics_channel";

/** The `diagnostics_channel` on which a factory that has read its options says which. */
export const builtChannelName = "countersign:built";

/** What a subscriber of `countersign:built` receives: by the rules of the table of options, which show no secret. */
export interface Built {
  /** The factory that the app has called, such as `payoutEndpoint`. */
  readonly factory: string;
  /** The option that holds these, such as `signature`; undefined of the factory's own. */
  readonly holder: string | undefined;
  /** What was read, with defaults, by the name of the option: only what doctors of apps need. */
  readonly facts: BuiltFacts;
}

/** Values that JSON has. */
export type BuiltFact = string | number | boolean | null | readonly BuiltFact[] | BuiltFacts;

/** Facts by name. */
export interface BuiltFacts {
  readonly [name: string]: BuiltFact;
}

export const builtChannel: Channel = channel(builtChannelName);
