export { responseSigner } from "./check.ts";
export { signResponse } from "./middleware.ts";
export { createSigner, type Signer } from "@countersign/http-message-signatures";
