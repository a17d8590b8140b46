export { opentelemetry, type OpenTelemetryOptions } from "./opentelemetry.ts";
