import { createServiceClient, ServiceClientError } from "countersign/client";
import {
  generateEndpoint,
  type GeneratedEndpoint,
} from "countersign/webhooks";

/**
 * Registers a new webhook endpoint, and returns its path and credentials:
 * secrets of the platform from now on.
 */
export async function registerEndpoint(
  apiKey: string,
): Promise<GeneratedEndpoint> {
  const service = createServiceClient({
    baseUrl: "https://api.service.example",
    apiKey,
  });
  const endpoint = generateEndpoint({ baseUrl: "https://platform.example" });
  const {
    url,
    username: authUsername,
    password: authPassword,
    secret: signatureSecret,
  } = endpoint;
  try {
    await service.createWebhookEndpoint({
      url,
      authUsername,
      authPassword,
      signatureSecret,
    });
  } catch (error) {
    // Fit for a log: no API key, password or secret is in it.
    if (error instanceof ServiceClientError)
      console.error(error.code, error.status, error.body);
    throw error;
  }
  return endpoint;
}
