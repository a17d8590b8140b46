export { prometheus } from "./prometheus.ts";
