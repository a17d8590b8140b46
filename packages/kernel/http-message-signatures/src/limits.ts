/** Characters of one combined Signature-Input, Signature or Content-Digest field; more is refused unread. */
export const maxFieldLength = 4096;

/** Members of one dictionary: labels of Signature-Input and Signature, algorithms of Content-Digest. */
export const maxMembers = 4;

export const maxComponents = 16;

/** Members of a covered structured field, and items of a list in it. */
export const maxStructuredMembers = 64;

/** Parameters of one signature, or of one component. */
export const maxParameters = 8;

/** Characters of a keyid. */
export const maxKeyidLength = 256;

/** Characters of a nonce. */
export const maxNonceLength = 128;

/** Characters of a tag that is signed; a received one is bounded by its field. */
export const maxTagLength = 256;
