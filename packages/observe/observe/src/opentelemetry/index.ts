export { opentelemetry } from "./opentelemetry.ts";
