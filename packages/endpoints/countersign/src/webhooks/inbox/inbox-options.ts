import { option, readOptions, type OptionTable, type ReadOptions } from "@countersign/core/internal";
import { transactionOptions } from "@countersign/idempotency/internal";
import { workerOptions } from "@countersign/idempotency/work/internal";
import type { WebhookEvent } from "../envelope/events.ts";
import { entityOf } from "../events/latest-only.ts";
import { assertOwnKeys, handlerRules } from "../events/webhook-handler-options.ts";
import type { EventFailure } from "../events/webhook-handler-types.ts";
import type { CreateInboxOptions } from "./inbox-types.ts";

export const factoryName = "createInbox";

const usualName = "inbox";

export const table = {
  ...workerOptions.table,
  stores: option.own(workerOptions.readStores<never>),
  fallback: handlerRules.fallback,
  name: option.optional(option.own(workerOptions.queueName()), JSON.stringify(usualName)),
  entityOf: option.call<(event: WebhookEvent) => string | undefined>(entityOf, "by the spec's ids"),
  receiveOnly: option.boolean(false),
  onError: handlerRules.onError,
  onDeadLetter: option.optional(option.call<(failure: EventFailure) => unknown>()),
} satisfies OptionTable<CreateInboxOptions<never, "sync">, unknown>;

export type ResolvedInboxOptions = ReadOptions<typeof table> & { readonly name: string };

/** Fills in the defaults; throws an OptionError on a bad option. */
export function resolveInboxOptions(options: object): ResolvedInboxOptions {
  const read = readOptions(factoryName, table, options);
  const { stores, fallback, name = usualName } = read;
  workerOptions.assertFit(factoryName, read);
  transactionOptions.assertInMode(stores, fallback, factoryName, "fallback");
  // Last, when this inbox is certain to be made.
  assertOwnKeys({ factory: factoryName, option: "name", store: stores.work }, name, read.name !== undefined);
  return { ...read, name };
}
