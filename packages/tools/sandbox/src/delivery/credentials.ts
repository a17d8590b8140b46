/** What the service authenticates itself with at one endpoint. */
export interface WebhookCredentials {
  /** Without a colon, which ends the username in RFC 7617. */
  readonly username: string;
  readonly password: string;
  /** Key of the HMAC in X-Payload-Signature, as UTF-8. */
  readonly secret: string;
}

const unfit = /[\p{Cc}\p{Cs}]/u;

/** Throws a TypeError, which shows no credential, when one of them is empty or cannot be sent. */
export function assertCredentials({ username, password, secret }: WebhookCredentials): void {
  for (const [name, value] of Object.entries({ username, password, secret })) {
    if (typeof value !== "string" || value === "") throw new TypeError(`${name} must not be empty`);
    if (unfit.test(value)) throw new TypeError(`${name} must not hold control characters`);
  }
  if (username.includes(":")) throw new TypeError("username must not hold a colon (RFC 7617)");
}
