import type { BodyCode, JsonCode } from "@countersign/core/door";

/** The codes of the refusals of bodies and of their JSON. */
export type RawBodyCode = BodyCode | JsonCode | "media-type-unsupported" | "raw-body-missing";
