export { prometheus, type HeldKeysStore, type PrometheusOptions } from "./prometheus.ts";
