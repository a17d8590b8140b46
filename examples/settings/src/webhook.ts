import { secretFault, userNameFault } from "@countersign/core/internal";
import { generateEndpoint } from "countersign/webhooks";
import { optional, type Environment } from "./environment.ts";
import { SettingError } from "./setting-error.ts";
import { parseFlag, parsePath } from "./values.ts";

/** How the lending service reaches the webhook route. */
export interface WebhookSettings {
  readonly path: string;
  /** WEBHOOK_PATH is not set: the path is another one at each start. */
  readonly isPathGenerated: boolean;
  readonly username: string;
  readonly password: string;
  /** More than one during a rotation. */
  readonly secrets: readonly string[];
  readonly allowHttp: boolean;
}

const credentialVariables = ["WEBHOOK_USERNAME", "WEBHOOK_PASSWORD", "WEBHOOK_SECRETS"];

/**
 * Reads the variables of the webhook route; undefined when neither path nor credentials are set. Throws a SettingError, which
 * shows no credential: all three of them belong together.
 */
export function readWebhook(env: Environment): WebhookSettings | undefined {
  const allowHttp = readAllowHttp(env);
  const present = [...credentialVariables, "WEBHOOK_PATH"].filter((variable) => env[variable] !== undefined);
  if (present.length === 0) return undefined;
  const required = <T>(variable: string, parse: (variable: string, text: string) => T): T => {
    const value = optional(variable, env, parse);
    if (value !== undefined) return value;
    const all = credentialVariables.join(", ");
    throw new SettingError(variable, `a value, because ${present.join(", ")} is set (${all}: all or none)`);
  };
  const path = optional("WEBHOOK_PATH", env, parsePath);
  return {
    path: path ?? generatedPath(),
    isPathGenerated: path === undefined,
    username: required("WEBHOOK_USERNAME", parseUsername),
    password: required("WEBHOOK_PASSWORD", parsePassword),
    secrets: required("WEBHOOK_SECRETS", parseSecrets),
    allowHttp,
  };
}

function readAllowHttp(env: Environment): boolean {
  const allowHttp = optional("WEBHOOK_ALLOW_HTTP", env, parseFlag) ?? false;
  if (allowHttp && env["NODE_ENV"] === "production") {
    throw new SettingError("WEBHOOK_ALLOW_HTTP", "0 in production (webhooks come by https only)", "1");
  }
  return allowHttp;
}

// Only the path is used: under which host the service knows this platform is not among its settings.
function generatedPath(): string {
  return generateEndpoint({ baseUrl: "https://platform.invalid" }).path;
}

function parseUsername(variable: string, text: string): string {
  return parseFaultless(variable, text, userNameFault(text));
}

function parsePassword(variable: string, text: string): string {
  return parseFaultless(variable, text, secretFault(text));
}

function parseFaultless(variable: string, text: string, fault: string | undefined): string {
  if (fault === undefined) return text;
  throw new SettingError(variable, `a text that is not blank, without control characters; this one ${fault}`);
}

// White space beside a comma is refused: as a part of the secret nobody would see it, and taken off it would be another one.
function parseSecrets(variable: string, text: string): readonly string[] {
  const secrets = text.split(",");
  if (secrets.some((secret) => secret === "" || secret.trim() !== secret)) {
    throw new SettingError(
      variable,
      "a comma list of secrets, none of them empty or with white space around it",
    );
  }
  // A list with line ends for commas is one secret that nobody signs with.
  const fault = secretFault(text);
  if (fault !== undefined) {
    throw new SettingError(variable, `a comma list of secrets without control characters; this one ${fault}`);
  }
  if (new Set(secrets).size !== secrets.length) {
    throw new SettingError(variable, "a comma list of different secrets");
  }
  return secrets;
}
