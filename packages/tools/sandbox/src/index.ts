export { generateKeyPair, importPrivateKey, type KeyPairOptions, type SigningKeyPair } from "./key-pair.ts";
export {
  assertFileSafeKeyid,
  KeyFileError,
  writeKeyFiles,
  type KeyFileOptions,
  type KeyFiles,
} from "./key-files.ts";
export {
  createPayoutInstruction,
  sampleBusiness,
  type PayoutInstruction,
  type PayoutInstructionOptions,
} from "./payout-instruction.ts";
export {
  buildPayoutRequest,
  type PayoutRequest,
  type PayoutRequestOptions,
  type PayoutSignature,
} from "./payout-request.ts";
export { isObjectText, jsonWithTexts } from "./json-text.ts";
export { tamperedParts, type TamperedPart } from "./tamper.ts";
export { sendPayout } from "./send-payout.ts";
export {
  sendRequest,
  type ExchangeOptions,
  type OutgoingRequest,
  type PayoutAnswer,
  type SendOptions,
} from "./send-request.ts";
export { isSendErrorCode, PayoutSendError, type SendErrorCode } from "./send-error.ts";
export {
  planPayout,
  runPayoutPlan,
  type PayoutOutcome,
  type PayoutPlan,
  type PayoutPlanOptions,
  type PayoutReport,
  type PayoutStep,
} from "./payout-plan.ts";
export { payoutVariants, type PayoutVariant, type PayoutVariantInfo } from "./payout-variants.ts";
export { explainStatus, matchesStatus, parseStatusPatterns, type StatusPattern } from "./status.ts";
export { deliveryStates } from "./delivery/delivery-state.ts";
export { createDeliveryService, type DeliveryService } from "./delivery/delivery-service.ts";
export { createEnvelope, type EnvelopeInit } from "./delivery/envelope.ts";
export { sendWebhook, type WebhookAnswer, type WebhookOptions } from "./delivery/send-webhook.ts";
export {
  buildWebhookRequest,
  tamperedWebhookParts,
  type TamperedWebhookPart,
  type WebhookRequestOptions,
} from "./delivery/webhook-request.ts";
export { formatTimestamp } from "./delivery/timestamp.ts";
export type { DeliveryControl, DeliveryDetail } from "./delivery/delivery-control.ts";
export type { WebhookExchange } from "./delivery/send-webhook.ts";
export { sampleEventData } from "./sample-events.ts";
export type { PageOptions } from "./page/page-options.ts";
export type {
  Delivery,
  DeliveryAttempt,
  DeliveryFilter,
  DeliveryOptions,
  DeliveryServiceInit,
  DeliveryState,
  EndpointRegistration,
  RegisteredEndpoint,
  ServiceEvent,
  StartTimer,
  StopKind,
} from "./delivery/types.ts";
export { startSandbox, type Sandbox } from "./service/sandbox.ts";
export type { SandboxOptions } from "./service/options.ts";
export { SandboxError, type SandboxErrorCode } from "./service/sandbox-error.ts";
export { SandboxDatabaseError } from "./service/database.ts";
export type { Confirmation } from "./service/confirmations.ts";
export type { NewPaymentRequest } from "./service/input.ts";
export type { PaymentRequest } from "./service/payment-requests.ts";
export type { NotifiedPaymentRequest, Reminder, StatusChange } from "./service/simulation.ts";
