export { inspector, type Inspector } from "./inspector.ts";
export type {
  InspectedAddresses,
  InspectedBasicAuth,
  InspectedHmac,
  InspectedSignature,
  InspectorOptions,
} from "./options.ts";
