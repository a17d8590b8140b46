import type { Meter } from "@opentelemetry/api";
import { docsOf } from "@countersign/core";
import { boundedLabel, listen } from "@countersign/core/internal";

/** Returns what ends the recording. */
export function recordMetrics(factoryName: string, meter: Meter, maxLabels: number): () => void {
  const histogram = (name: string, explicitBucketBoundaries: number[]) =>
    meter.createHistogram(name, { unit: "s", advice: { explicitBucketBoundaries } });
  const timed = (name: string) => histogram(name, [0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10]);
  const verdicts = timed("countersign.verdict.duration");
  const age = histogram("countersign.signature.age", [-60, -10, -1, 0, 1, 10, 60, 120, 300]);
  const notices = meter.createCounter("countersign.notices", { unit: "{notice}" });
  const claims = timed("countersign.claim.duration");
  const waits = timed("countersign.wait.duration");
  const owned = timed("countersign.key.owned.duration");
  const losses = meter.createCounter("countersign.lease.losses", { unit: "{loss}" });
  const steps = timed("db.client.operation.duration");
  const events = timed("countersign.event.duration");
  const tasks = timed("countersign.task.duration");
  const uses = meter.createCounter("countersign.key.uses", { unit: "{signature}" });

  const guards = boundedLabel(maxLabels);
  const others = boundedLabel(maxLabels);
  const codes = (code: string): string => (docsOf(code) === undefined ? others(code) : code);
  const engines = boundedLabel(maxLabels);
  const queues = boundedLabel(maxLabels);
  const keyids = boundedLabel(maxLabels);
  const of = (guard: string, outcome: string | undefined) => ({
    "countersign.guard": guards(guard),
    "countersign.outcome": outcome ?? "",
  });
  const coded = (guard: string, code: string) => ({
    "countersign.guard": guards(guard),
    "countersign.code": codes(code),
  });

  return listen(factoryName, {
    verdict({ guard, outcome, code, durationMs, ageSeconds }) {
      const type = failed(code === undefined ? undefined : codes(code));
      verdicts.record(durationMs / 1000, { ...of(guard, outcome), ...type });
      // Once a signature, and only of verified ones: later checks repeat it.
      if (guard === "httpSignatureVerify" && outcome === "pass" && ageSeconds !== undefined)
        age.record(ageSeconds);
    },
    notice: ({ guard, code }) => notices.add(1, coded(guard, code)),
    claim: ({ guard, outcome, durationMs = 0 }) => claims.record(durationMs / 1000, of(guard, outcome)),
    wait: ({ guard, outcome, durationMs = 0 }) => waits.record(durationMs / 1000, of(guard, outcome)),
    settled: ({ guard, outcome, ownedMs }) => owned.record(ownedMs / 1000, of(guard, outcome)),
    leaseLost: ({ guard, code }) => losses.add(1, coded(guard, code)),
    store({ engine, step, outcome, durationMs = 0 }) {
      const type = failed(outcome === "ok" ? undefined : outcome);
      const called = { "db.system.name": engines(engine), "db.operation.name": step };
      steps.record(durationMs / 1000, { ...called, ...type });
    },
    event({ type, isKnownType, outcome = "", durationMs = 0 }) {
      const event = {
        "countersign.event.type": isKnownType ? type : "other",
        "countersign.outcome": outcome,
      };
      events.record(durationMs / 1000, event);
    },
    task: ({ queue, outcome = "", durationMs = 0 }) =>
      tasks.record(durationMs / 1000, { "countersign.queue": queues(queue), "countersign.outcome": outcome }),
    keyUse: ({ keyid }) => uses.add(1, { "countersign.keyid": keyids(keyid) }),
  });
}

function failed(type: string | undefined): { "error.type"?: string } {
  return type === undefined ? {} : { "error.type": type };
}
