import { metrics, trace, type MeterProvider, type TracerProvider } from "@opentelemetry/api";
import {
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core/internal";
import { recordMetrics } from "./metrics.ts";
import { recordSpans } from "./spans.ts";

export interface OpenTelemetryOptions {
  /** Default the global one. */
  readonly tracerProvider?: TracerProvider | undefined;
  /** Default the global one. */
  readonly meterProvider?: MeterProvider | undefined;
  /** How many different values an attribute of a metric may have; what comes later is `other`. Default 100. */
  readonly maxLabels?: number | undefined;
}

export const table = {
  tracerProvider: option.optional(option.own(readTracers)),
  meterProvider: option.optional(option.own(readMeters)),
  maxLabels: option.integer({ min: 10, max: 10_000, fallback: 100 }),
} satisfies OptionTable<OpenTelemetryOptions, unknown>;

function readTracers(given: unknown, owner: OptionOwner, name: string): TracerProvider {
  if (has<TracerProvider>(given, "getTracer")) return given;
  throw optionError(owner, name, "a TracerProvider", given);
}

function readMeters(given: unknown, owner: OptionOwner, name: string): MeterProvider {
  if (has<MeterProvider>(given, "getMeter")) return given;
  throw optionError(owner, name, "a MeterProvider", given);
}

function has<Provider>(given: unknown, method: keyof Provider): given is Provider {
  return typeof Object(given)[method] === "function";
}

/**
 * Makes spans and metrics of what guards decide, claim, ask of stores and handle. With a context manager, the span of a claim, store call
 * or event is the parent of what runs inside. Returns what ends it. Throws an OptionError.
 */
export function opentelemetry(options: OpenTelemetryOptions = {}): () => void {
  const factoryName = "opentelemetry";
  const {
    tracerProvider = trace,
    meterProvider = metrics,
    maxLabels,
  } = readOptions(factoryName, table, options);
  const scope = "@countersign/observe/opentelemetry";
  const endSpans = recordSpans(factoryName, tracerProvider.getTracer(scope));
  const endMetrics = recordMetrics(factoryName, meterProvider.getMeter(scope), maxLabels);
  return () => {
    endSpans();
    endMetrics();
  };
}
