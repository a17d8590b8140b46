import { channel, type Channel } from "node:diagnostics_channel";
import type { OptionOwner } from "./options.ts";

/** The `diagnostics_channel` on which each check and memory store says once, when it is built, what it was built with. */
export const builtChannelName = "countersign:built";

/** What a subscriber of `countersign:built` receives. */
export interface Built {
  /** The check or the store, for example `httpSignatureVerify`. */
  readonly built: string;
  /** The factory that the app has called: an endpoint builds several checks. */
  readonly factory: string;
  /** What it was built with, without any secret: counts, names, public settings. */
  readonly facts: BuiltFacts;
}

/** Values that JSON has. */
export type BuiltFact = string | number | boolean | null | readonly BuiltFact[] | BuiltFacts;

/** Facts by name. */
export interface BuiltFacts {
  readonly [name: string]: BuiltFact;
}

/**
 * Says what was built, to whoever looks at an app as a whole, such as `countersign doctor`. `facts` is asked only where somebody
 * subscribes, and must give no secret and nothing that a secret can be guessed from.
 */
export function publishBuilt(built: string, owner: OptionOwner, facts: () => BuiltFacts): void {
  if (!builtChannel.hasSubscribers) return;
  const factory = typeof owner === "string" ? owner : owner.factory;
  builtChannel.publish({ built, factory, facts: facts() } satisfies Built);
}

const builtChannel: Channel = channel(builtChannelName);
