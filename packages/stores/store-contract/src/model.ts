export { ReferenceStore } from "./model/reference-store.ts";
export { fenceIn, performStep, type PayStep, type Step } from "./model/step.ts";
