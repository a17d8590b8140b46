import { generateEndpoint } from "@countersign/webhooks";

// Once, when the platform is set up. Keep all four as secrets, the path among
// them.
export const { url, path, username, password, secret } = generateEndpoint({
  baseUrl: "https://platform.example",
});
