/** The codes with which an answer is replaced by another one because it could not be signed; events and notices have them. */
export type HttpSignatureSignCode = "answer-too-large" | "answer-unsendable" | "signing-failed";
