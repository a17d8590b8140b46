// What the platform and the lending service of the soak have agreed.
export const webhookPath = "/webhooks";
export const settlePath = "/settle";

/** Of a test: no secret. */
export const credentials = { username: "soak", password: "soak-password", secret: "soak-secret" };
