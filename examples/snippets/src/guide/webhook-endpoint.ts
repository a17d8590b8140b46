import { generateEndpoint } from "countersign/webhooks";

// Once, when the platform is set up. Keep all four as secrets, also the path.
export const { url, path, username, password, secret } = generateEndpoint({
  baseUrl: "https://platform.example",
});
