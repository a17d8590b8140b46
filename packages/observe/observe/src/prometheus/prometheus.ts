import { docsOf } from "@countersign/core";
import {
  boundedLabel,
  listen,
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core/internal";
import { Counter, Gauge, Histogram, register, type Registry } from "prom-client";
import { countHeld, type HeldKeysStore } from "./held-keys.ts";
import { storesWith } from "./polling.ts";
import { countTasks, type TaskSummaries } from "./tasks.ts";

export interface PrometheusOptions {
  /** Where the metrics are registered. Default `register` of prom-client. */
  readonly registry?: Registry | undefined;
  /** Stores by a name, whose held keys are counted at each scrape, up to 10,000 each. Default none. */
  readonly heldKeys?: Readonly<Record<string, HeldKeysStore>> | undefined;
  /** Tables of work (`stores.work`) by a name, whose tasks are counted at each scrape. Default none. */
  readonly work?: Readonly<Record<string, TaskSummaries>> | undefined;
  /** How many different values a label may have; what comes later is `other`. Default 100. */
  readonly maxLabels?: number | undefined;
}

const factoryName = "prometheus";

export const table = {
  registry: option.optional(option.own(readRegistry), "register of prom-client"),
  heldKeys: option.own(storesWith<HeldKeysStore>("list", "stores that can list"), "none"),
  work: option.own(storesWith<TaskSummaries>("summaries", "tables of work"), "none"),
  maxLabels: option.integer({ min: 10, max: 10_000, fallback: 100 }),
} satisfies OptionTable<PrometheusOptions, unknown>;

function readRegistry(given: unknown, owner: OptionOwner, name: string): Registry {
  if (isRegistry(given)) return given;
  throw optionError(owner, name, "a Registry of prom-client", given);
}

function isRegistry(given: unknown): given is Registry {
  return typeof Object(given).registerMetric === "function";
}

// From half a millisecond, as a check takes, to the ten seconds that a webhook may.
const seconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const ages = [-60, -30, -10, -5, -1, 0, 1, 5, 10, 30, 60, 120, 300];

/** Counts and times what guards do. No caller chooses a label. Returns what ends it and removes the metrics. Throws an OptionError. */
export function prometheus(options: PrometheusOptions = {}): () => void {
  const { registry = register, heldKeys, work, maxLabels } = readOptions(factoryName, table, options);
  const registers = [registry];
  const names: string[] = [];
  const named = <Name extends string>(name: string, help: string, labelNames: readonly Name[]) => {
    names.push(name);
    return { name, help, labelNames, registers };
  };
  const timed = <Name extends string>(name: string, help: string, labelNames: readonly Name[]) =>
    new Histogram({ ...named(name, help, labelNames), buckets: seconds });
  const counted = <Name extends string>(name: string, help: string, labelNames: readonly Name[]) =>
    new Counter(named(name, help, labelNames));

  const verdicts = counted("countersign_verdicts_total", "Decisions of guards", ["guard", "outcome", "code"]);
  const verdictTime = timed("countersign_verdict_seconds", "Time in a guard", ["guard"]);
  const age = new Histogram({
    ...named("countersign_signature_age_seconds", "Our clock less created, of signatures that passed", []),
    buckets: ages,
  });
  const notices = counted("countersign_notices_total", "What an operator should hear of", ["guard", "code"]);
  const claims = timed("countersign_claim_seconds", "Claims of keys", ["guard", "outcome"]);
  const waits = timed("countersign_wait_seconds", "Duplicates that waited", ["guard", "outcome"]);
  const settled = counted("countersign_keys_settled_total", "Owned keys by their end", ["guard", "outcome"]);
  const owned = timed("countersign_key_owned_seconds", "From claim to end", ["guard"]);
  const losses = counted("countersign_lease_losses_total", "Owners that may have lost their key", [
    "guard",
    "code",
  ]);
  const steps = timed("countersign_store_seconds", "Calls of stores", ["engine", "step", "outcome"]);
  const events = timed("countersign_event_seconds", "Events of webhooks", ["type", "outcome"]);
  const attempts = timed("countersign_task_seconds", "Attempts at tasks of work", ["queue", "outcome"]);
  const uses = counted("countersign_key_uses_total", "Verified signatures", ["keyid", "subject"]);
  const ends = new Gauge(
    named("countersign_key_not_after_timestamp_seconds", "When a used key ends, Unix time", ["keyid"]),
  );
  const gauge = named("countersign_held_keys", "Keys that wait for an operator", ["store"]);
  const held: Gauge<"store"> = new Gauge({
    ...gauge,
    collect: (): Promise<void> => countHeld(factoryName, heldKeys, held),
  });

  let counting: Promise<void> | undefined;
  const tasks: Gauge<"store" | "queue" | "state"> = new Gauge({
    ...named("countersign_tasks", "Tasks of work that are open or dead", ["store", "queue", "state"]),
    collect: (): Promise<void> => (counting = countTasks(factoryName, work, { tasks, oldest })),
  });
  const oldest = new Gauge({
    ...named("countersign_tasks_oldest_seconds", "Age of the oldest open task", ["store", "queue"]),
    // Set with the other: collected after it, from the same answer.
    collect: () => counting,
  });

  const guards = boundedLabel(maxLabels);
  const others = boundedLabel(maxLabels);
  // Ours are fixed; another guard may make codes of wire text.
  const codes = (code: string): string => (docsOf(code) === undefined ? others(code) : code);
  const engines = boundedLabel(maxLabels);
  const queues = boundedLabel(maxLabels);
  const keyids = boundedLabel(maxLabels);
  const subjects = boundedLabel(maxLabels);

  const end = listen(factoryName, {
    verdict({ guard, outcome, code = "none", durationMs, ageSeconds }) {
      verdicts.inc({ guard: guards(guard), outcome, code: codes(code) });
      verdictTime.observe({ guard: guards(guard) }, durationMs / 1000);
      // Once a signature, and only of verified ones: later checks repeat it.
      if (guard === "httpSignatureVerify" && outcome === "pass" && ageSeconds !== undefined)
        age.observe(ageSeconds);
    },
    notice: ({ guard, code }) => notices.inc({ guard: guards(guard), code: codes(code) }),
    claim: ({ guard, outcome = "", durationMs = 0 }) =>
      claims.observe({ guard: guards(guard), outcome }, durationMs / 1000),
    wait: ({ guard, outcome = "", durationMs = 0 }) =>
      waits.observe({ guard: guards(guard), outcome }, durationMs / 1000),
    store: ({ engine, step, outcome = "", durationMs = 0 }) =>
      steps.observe({ engine: engines(engine), step, outcome }, durationMs / 1000),
    settled({ guard, outcome, ownedMs }) {
      settled.inc({ guard: guards(guard), outcome });
      owned.observe({ guard: guards(guard) }, ownedMs / 1000);
    },
    leaseLost: ({ guard, code }) => losses.inc({ guard: guards(guard), code: codes(code) }),
    event: ({ type, isKnownType, outcome = "", durationMs = 0 }) =>
      events.observe({ type: isKnownType ? type : "other", outcome }, durationMs / 1000),
    task: ({ queue, outcome = "", durationMs = 0 }) =>
      attempts.observe({ queue: queues(queue), outcome }, durationMs / 1000),
    keyUse({ keyid: used, subject = "", notAfter }) {
      const keyid = keyids(used);
      uses.inc({ keyid, subject: subjects(subject) });
      if (notAfter !== undefined && keyid === used) ends.set({ keyid }, notAfter);
    },
  });
  return () => {
    end();
    for (const name of names) registry.removeSingleMetric(name);
  };
}
