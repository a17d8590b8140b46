import { channel, type Channel } from "node:diagnostics_channel";

/** The `diagnostics_channel` of {@link Built}. */
export const builtChannelName = "countersign:built";

/** A factory has read its options: what their rules show of them, never a secret. */
export interface Built {
  /** The factory that the app has called, such as `payoutEndpoint`. */
  readonly factory: string;
  /** The option that holds these, such as `signature`; undefined of the factory's own. */
  readonly holder: string | undefined;
  /** By the name of the option: its value, or what its rule makes of it. */
  readonly facts: BuiltFacts;
}

/** Values that JSON has. */
export type BuiltFact = string | number | boolean | null | readonly BuiltFact[] | BuiltFacts;

/** Facts by name. */
interface BuiltFacts {
  readonly [name: string]: BuiltFact;
}

export const builtChannel: Channel = channel(builtChannelName);
