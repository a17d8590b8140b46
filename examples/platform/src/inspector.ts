import { SettingError, type Settings } from "@countersign/example-settings";
import type { Keys } from "@countersign/http-signature-verify";
import type { Inspector } from "@countersign/devtools/inspector";
import type { PlatformStorage } from "./engines/storage.ts";

/** What the inspector explains refusals with, and what it looks into. */
interface Inspected {
  readonly settings: Settings;
  readonly keys: Keys;
  readonly storage: Pick<PlatformStorage, "stores" | "work">;
}

/**
 * In development: a page that shows each request that the checks have decided. Undefined without INSPECTOR_PORT. Throws a SettingError
 * when its port cannot be had.
 */
export async function startInspector({ settings, keys, storage }: Inspected): Promise<Inspector | undefined> {
  const { inspectorPort: port, allowedIps, trustProxy, pathPrefix, webhook } = settings;
  if (port === undefined) return undefined;
  const { inspector } = await import("@countersign/devtools/inspector");
  try {
    return await inspector({
      port,
      addresses: { allow: allowedIps, trustProxy: trustProxy.length === 0 ? undefined : trustProxy },
      signature: { keys, pathPrefix },
      basicAuth: webhook && { username: webhook.username, password: webhook.password },
      hmac: webhook && { secrets: webhook.secrets },
      stores: { payouts: storage.stores.idempotency },
      work: { transfers: storage.work.work },
    });
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EADDRINUSE")) throw error;
    throw new SettingError("INSPECTOR_PORT", `a free port, ${port} is in use on 127.0.0.1`);
  }
}
