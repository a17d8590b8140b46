import { opentelemetry } from "@countersign/observe/opentelemetry";
import { metrics, trace } from "@opentelemetry/api";

/**
 * Once, where the process starts, after the SDK: these are its global
 * providers, which are the default.
 */
export function startTelemetry(): () => void {
  return opentelemetry({
    tracerProvider: trace.getTracerProvider(),
    meterProvider: metrics.getMeterProvider(),
  });
}
