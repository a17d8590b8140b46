export { prometheus, type PrometheusOptions } from "./prometheus.ts";
