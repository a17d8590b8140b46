export { startSandbox, type Sandbox } from "./service/sandbox.ts";
export type { SandboxOptions } from "./service/options.ts";
export type { PageOptions } from "./page/page-options.ts";
export type { Delivery } from "./delivery/delivery.ts";
export type { DeliveryOptions } from "./delivery/options.ts";
export { SandboxError } from "./service/sandbox-error.ts";
export { generateKeyPair, type SigningKeyPair } from "./key-pair.ts";
export { writeKeyFiles } from "./key-files.ts";
export {
  createPayoutInstruction,
  sampleBusiness,
  type PayoutInstructionOptions,
} from "./payout-instruction.ts";
export { buildPayoutRequest, type PayoutRequest, type PayoutRequestOptions } from "./payout-request.ts";
export { sendPayout, sendRequest, type PayoutAnswer, type SendOptions } from "./send-request.ts";
export { PayoutSendError, type SendErrorCode } from "./send-error.ts";
export { createEnvelope } from "./delivery/envelope.ts";
export { buildWebhookRequest } from "./delivery/webhook-request.ts";
export { sendWebhook } from "./delivery/send-webhook.ts";
