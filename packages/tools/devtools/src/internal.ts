// What the command and the demo need beside the root.
export { payoutPlans } from "./sandbox/payout-plan.ts";
export type { PayoutVariant } from "./sandbox/payout-variants.ts";
export { statuses } from "./sandbox/status.ts";
export { importPrivateKey } from "./sandbox/key-pair.ts";
export { assertFileSafeKeyid, KeyFileError } from "./sandbox/key-files.ts";
export { jsonTexts } from "./sandbox/json-text.ts";
export { formatTimestamp, sampleEventData } from "./sandbox/delivery/envelope.ts";
export { tamperedWebhookTexts } from "./sandbox/delivery/webhook-request.ts";
export { deliveryStates } from "./sandbox/delivery/delivery.ts";
export { SandboxDatabaseError } from "./sandbox/service/database.ts";
