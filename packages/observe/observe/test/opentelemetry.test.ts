import { channel } from "node:diagnostics_channel";
import { context, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from "@opentelemetry/sdk-trace-base";
import { guardChannel, traces } from "@countersign/core";
import { askStore, traced } from "@countersign/core/internal";
import { opentelemetry } from "@countersign/observe/opentelemetry";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { engineOfLife, liveThrough } from "@countersign/test-support/runs/observed-life.ts";

const spans = new InMemorySpanExporter();
const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
let exporter: InMemoryMetricExporter;
let meterProvider: MeterProvider;
let end: () => void;

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
});

afterAll(() => {
  context.disable();
});

beforeEach(() => {
  exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  meterProvider = new MeterProvider({ readers: [reader] });
  end = opentelemetry({ tracerProvider, meterProvider });
});

// A file before this one may have left a subscriber in the process.
const subscribed = (): boolean[] =>
  [guardChannel, traces.claim, traces.event, traces.store].map(({ hasSubscribers }) => hasSubscribers);
const subscribedBefore = subscribed();

afterEach(async () => {
  end();
  spans.reset();
  await meterProvider.shutdown();
  expect(subscribed()).toEqual(subscribedBefore);
});

function spansNamed(name: string): ReadableSpan[] {
  return spans.getFinishedSpans().filter((span) => span.name === name);
}

const parentOf = (span: ReadableSpan | undefined): string | undefined => span?.parentSpanContext?.spanId;
const idOf = (span: ReadableSpan | undefined): string | undefined => span?.spanContext().spanId;

describe("spans", () => {
  test("of a claim are around those of its store calls", async () => {
    await liveThrough();
    const claims = spansNamed("claim key").filter(
      ({ attributes }) => attributes["countersign.guard"] === "exampleGuard",
    );
    expect(claims.map(({ attributes }) => attributes)).toMatchObject([
      { "countersign.idempotency_key": "k1", "countersign.outcome": "acquired" },
      { "countersign.idempotency_key": "k1", "countersign.outcome": "done" },
      { "countersign.idempotency_key": "k2", "countersign.outcome": "acquired" },
      { "countersign.outcome": "error", "error.type": "idempotency-store-unavailable" },
    ]);
    const calls = spansNamed(`claim ${engineOfLife}`);
    expect(calls[0]).toMatchObject({
      kind: SpanKind.CLIENT,
      attributes: { "db.system.name": engineOfLife, "db.operation.name": "claim" },
    });
    expect(parentOf(calls[0])).toBe(idOf(claims[0]));
    const failed = calls.find(({ status }) => status.code === SpanStatusCode.ERROR);
    expect(failed?.attributes).toMatchObject({ "error.type": "Error" });
    expect(failed?.events).toMatchObject([{ name: "exception" }]);
    expect(spansNamed("wait for key").map(({ attributes }) => attributes["countersign.outcome"])).toEqual([
      "held",
    ]);
  });

  test("of events have their claims inside", async () => {
    await liveThrough();
    const events = spansNamed("process webhook event");
    expect(events.map(({ kind, attributes }) => [kind, attributes])).toMatchObject([
      [
        SpanKind.CONSUMER,
        {
          "messaging.system": "webhook",
          "messaging.operation.type": "process",
          "messaging.message.id": "good",
          "messaging.message.conversation_id": "wh_1",
          "countersign.event.type": "seller.status_changed",
          "countersign.attempt": 1,
          "countersign.outcome": "done",
        },
      ],
      [SpanKind.CONSUMER, { "messaging.message.id": "bad", "countersign.outcome": "dead-lettered" }],
      [SpanKind.CONSUMER, { "messaging.message.id": "odd", "countersign.outcome": "ignored" }],
    ]);
    const inside = spansNamed("claim key").filter((span) => parentOf(span) === idOf(events[0]));
    expect(inside).toHaveLength(1);
  });

  test("of tasks tell the queue, the attempt and how it ended", async () => {
    await liveThrough();
    const tasks = spansNamed("process task");
    const task = { "messaging.system": "countersign", "messaging.destination.name": "outcomes" };
    expect(tasks.map(({ kind, attributes }) => [kind, attributes])).toMatchObject([
      [
        SpanKind.CONSUMER,
        { ...task, "messaging.message.id": "k1", "countersign.attempt": 1, "countersign.outcome": "done" },
      ],
    ]);
  });

  test("of a driver or a handler are inside, and ours are inside of the caller's", async () => {
    const tracer = tracerProvider.getTracer("test");
    const server = tracer.startSpan("server");
    const step = { engine: "probe", step: "claim", timeoutMs: 1_000, name: "the store" };
    await context.with(trace.setSpan(context.active(), server), () =>
      askStore(step, async () => {
        await new Promise((resolve) => setImmediate(resolve));
        tracer.startSpan("driver").end();
      }),
    );
    server.end();
    // The span of a call ends a few turns of the microtask queue behind its answer.
    await new Promise((resolve) => setImmediate(resolve));
    const [call] = spansNamed("claim probe");
    expect(parentOf(call)).toBe(idOf(spansNamed("server")[0]));
    expect(parentOf(spansNamed("driver")[0])).toBe(idOf(call));
    expect(trace.getSpan(context.active())).toBeUndefined();
  });

  test("of verdicts have the record, and are errors only where we failed", async () => {
    await liveThrough();
    const [passed] = spansNamed("check httpSignatureVerify");
    expect(passed?.attributes).toMatchObject({
      "countersign.id": expect.stringMatching(/^[\da-f-]{36}$/),
      "countersign.outcome": "pass",
      "countersign.keyid": "key-1",
      "countersign.idempotencyKey": "k1",
      "countersign.ageSeconds": 2.5,
    });
    const [refused] = spansNamed("check ipAllowlist");
    expect(refused).toMatchObject({
      status: { code: SpanStatusCode.UNSET },
      attributes: { "error.type": "signature-mismatch", "countersign.status": 401 },
    });
    const [failed] = spansNamed("check exampleGuard");
    expect(failed).toMatchObject({
      status: { code: SpanStatusCode.ERROR },
      attributes: { "error.type": "TypeError" },
    });
    expect(JSON.stringify(passed?.attributes)).not.toMatch(/"countersign\.(req|error)"/);
  });
});

describe("metrics", () => {
  async function points(): Promise<Record<string, { attributes: object; value: unknown }[]>> {
    await meterProvider.forceFlush();
    const metrics =
      exporter
        .getMetrics()
        .at(-1)
        ?.scopeMetrics.flatMap(({ metrics: all }) => all) ?? [];
    return Object.fromEntries(
      metrics.map(({ descriptor, dataPoints }) => [
        descriptor.name,
        dataPoints.map(({ attributes, value }) => ({ attributes, value })),
      ]),
    );
  }

  test("are recorded of each thing, with few attributes", async () => {
    await liveThrough();
    channel("countersign:lease-lost").publish({ guard: "g", key: "k", code: "lease-lost" });
    const found = await points();
    expect(new Set(Object.keys(found))).toEqual(
      new Set([
        "countersign.claim.duration",
        "countersign.event.duration",
        "countersign.task.duration",
        "countersign.key.owned.duration",
        "countersign.key.uses",
        "countersign.lease.losses",
        "countersign.notices",
        "countersign.signature.age",
        "countersign.verdict.duration",
        "countersign.wait.duration",
        "db.client.operation.duration",
      ]),
    );
    expect(found["countersign.verdict.duration"]?.map(({ attributes }) => attributes)).toEqual([
      { "countersign.guard": "httpSignatureVerify", "countersign.outcome": "pass" },
      {
        "countersign.guard": "ipAllowlist",
        "countersign.outcome": "reject",
        "error.type": "signature-mismatch",
      },
      {
        "countersign.guard": "exampleGuard",
        "countersign.outcome": "error",
        "error.type": "unexpected-error",
      },
    ]);
    expect(found["countersign.signature.age"]).toMatchObject([{ value: { count: 1, sum: 2.5 } }]);
    expect(found["countersign.task.duration"]?.map(({ attributes }) => attributes)).toEqual([
      { "countersign.queue": "outcomes", "countersign.outcome": "done" },
    ]);
    expect(found["countersign.event.duration"]?.map(({ attributes }) => attributes)).toEqual([
      { "countersign.event.type": "seller.status_changed", "countersign.outcome": "done" },
      { "countersign.event.type": "seller.status_changed", "countersign.outcome": "dead-lettered" },
      { "countersign.event.type": "other", "countersign.outcome": "ignored" },
    ]);
    expect(found["db.client.operation.duration"]?.map(({ attributes }) => attributes)).toContainEqual({
      "db.system.name": engineOfLife,
      "db.operation.name": "claim",
      "error.type": "error",
    });
    expect(found["countersign.key.uses"]).toEqual([
      { attributes: { "countersign.keyid": "key-1" }, value: 1 },
    ]);
  });

  test("have attributes of few values", async () => {
    end();
    end = opentelemetry({ tracerProvider, meterProvider, maxLabels: 10 });
    for (let index = 0; index < 100; index += 1) {
      channel("countersign:key-use").publish({ keyid: `key-${index}` });
    }
    expect((await points())["countersign.key.uses"]).toHaveLength(11);
  });
});

test("without a provider everything goes on", async () => {
  end();
  end = opentelemetry();
  const outcomeOf = (given: string): string => given;
  const told = { guard: "g", key: "k", req: undefined } as object;
  expect(await traced(traces.claim, told, { work: async () => "done", outcomeOf })).toBe("done");
});
