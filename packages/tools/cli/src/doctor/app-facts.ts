import type { Built } from "@countersign/core/door";
import type { MountedGuard } from "./express-stack.ts";
import type { EarlyHook } from "./fastify-hooks.ts";

/** How an app treats what its proxies say. */
export type ProxyTrust = "nobody" | "proxies" | "everybody" | "misread";

/** What is known of an app that was loaded; the process that loads it sends this. */
export interface AppFacts {
  readonly kind: "Express" | "Fastify" | "unknown";
  /** What factories have published, in this order. */
  readonly built: readonly Built[];
  /** Of Express alone. */
  readonly guards: readonly MountedGuard[];
  /** Of Fastify alone. */
  readonly earlyHooks: readonly EarlyHook[];
  /** Undefined where it does not show. Of Fastify, no more than `everybody` is told. */
  readonly trust: ProxyTrust | undefined;
  /** Whether the module began to listen by itself. */
  readonly listens: boolean;
  /** Why the module, or the app in it, could not be loaded. */
  readonly fault: AppFault | undefined;
}

/** An error of the app's own code; `option` where it was about an option. */
export interface AppFault {
  readonly message: string;
  readonly factory?: string | undefined;
  readonly option?: string | undefined;
}
