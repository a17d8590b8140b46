export { inspector, type Inspector } from "./inspector.ts";
export type { InspectorOptions } from "./options.ts";
