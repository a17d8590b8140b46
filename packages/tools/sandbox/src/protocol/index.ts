// What the command and the demo need beside the root.
export { payoutPlans } from "../payout-plan.ts";
export type { PayoutVariant } from "../payout-variants.ts";
export { statuses } from "../status.ts";
export { importPrivateKey } from "../key-pair.ts";
export { assertFileSafeKeyid, KeyFileError } from "../key-files.ts";
export { jsonTexts } from "../json-text.ts";
export { formatTimestamp, sampleEventData } from "../delivery/envelope.ts";
export { deliveryStates } from "../delivery/delivery.ts";
export { SandboxDatabaseError } from "../service/database.ts";
