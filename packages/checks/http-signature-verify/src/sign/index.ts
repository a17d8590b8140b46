export { responseSigner } from "./check.ts";
export { signResponse } from "./middleware.ts";
export type { SignResponseOptions } from "./options.ts";
export { createSigner, type Signer } from "@countersign/http-message-signatures";
