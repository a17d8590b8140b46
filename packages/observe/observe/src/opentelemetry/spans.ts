import * as api from "@opentelemetry/api";
import { isGuardError, onTraceEnd, traces, type GuardEvent, type TraceContext } from "@countersign/core";
import { aroundTrace, listen } from "@countersign/core/internal";

/** Makes a span of each trace and of each verdict. Returns what ends that. */
export function recordSpans(factoryName: string, tracer: api.Tracer): () => void {
  const ends = [
    follow(tracer, traces.claim, ({ guard, key }) => ({
      name: "claim key",
      attributes: attributesOf(guard, key),
    })),
    follow(tracer, traces.wait, ({ guard, key }) => ({
      name: "wait for key",
      attributes: attributesOf(guard, key),
    })),
    // Semantic conventions for spans of database clients.
    follow(tracer, traces.store, ({ engine, step }) => ({
      name: `${step} ${engine}`,
      kind: api.SpanKind.CLIENT,
      attributes: { "db.system.name": engine, "db.operation.name": step },
    })),
    // Semantic conventions for messaging: the processing of one message.
    follow(tracer, traces.event, ({ type, eventId, webhookId }) => ({
      name: "process webhook event",
      kind: api.SpanKind.CONSUMER,
      attributes: {
        "messaging.system": "webhook",
        "messaging.operation.type": "process",
        "messaging.message.id": eventId,
        "messaging.message.conversation_id": webhookId,
        "countersign.event.type": type,
      },
    })),
    follow(tracer, traces.task, ({ queue, taskId }) => ({
      name: "process task",
      kind: api.SpanKind.CONSUMER,
      attributes: {
        "messaging.system": "countersign",
        "messaging.operation.type": "process",
        "messaging.destination.name": queue,
        "messaging.message.id": taskId,
      },
    })),
    listen(factoryName, { verdict: (event) => verdictSpan(tracer, event) }),
  ];
  return () => {
    for (const end of ends) end();
  };
}

function attributesOf(guard: string, key: string): api.Attributes {
  return { "countersign.guard": guard, "countersign.idempotency_key": key };
}

function follow<Traced extends TraceContext & { readonly attempt?: number | undefined }>(
  tracer: api.Tracer,
  trace: Parameters<typeof aroundTrace<Traced>>[0],
  describe: (context: Traced) => api.SpanOptions & { readonly name: string },
): () => void {
  const spans = new WeakMap<object, api.Span>();
  const endAround = aroundTrace(trace, (context, work) => {
    const parent = api.context.active();
    const { name, ...options } = describe(context);
    const span = tracer.startSpan(name, options, parent);
    spans.set(context, span);
    return api.context.with(api.trace.setSpan(parent, span), work);
  });
  const end = onTraceEnd(trace, (context) => {
    const span = spans.get(context);
    spans.delete(context);
    span?.setAttribute("countersign.outcome", context.outcome ?? "");
    if (context.attempt !== undefined) span?.setAttribute("countersign.attempt", context.attempt);
    if (context.error !== undefined) fail(span, context.error);
    span?.end();
  });
  return () => {
    endAround();
    end();
  };
}

/** Made when the check ends, so it is beside the spans of its claims. */
function verdictSpan(
  tracer: api.Tracer,
  { req: _req, error, durationMs, components: _components, ...verdict }: GuardEvent,
): void {
  const endTime = performance.timeOrigin + performance.now();
  const known = Object.entries(verdict).filter(([, value]) => value !== undefined);
  const attributes = Object.fromEntries(known.map(([name, value]) => [`countersign.${name}`, value]));
  const startTime = endTime - durationMs;
  const span = tracer.startSpan(`check ${verdict.guard}`, { startTime, attributes });
  // A caller's fault is no error of the server, as in the conventions for HTTP.
  if (verdict.outcome === "error") fail(span, error);
  else if (verdict.code !== undefined) span.setAttribute("error.type", verdict.code);
  span.end(endTime);
}

function fail(span: api.Span | undefined, error: unknown): void {
  const name = error instanceof Error ? error.name : "_OTHER";
  span?.setAttribute("error.type", isGuardError(error) ? error.code : name);
  span?.setStatus({ code: api.SpanStatusCode.ERROR });
  if (error instanceof Error) span?.recordException(error);
}
