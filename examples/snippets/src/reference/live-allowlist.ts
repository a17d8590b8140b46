import { ipAllowlist, liveAllowlist } from "@countersign/ip-allowlist";
import express, { type Express } from "express";

/**
 * Admits whom the list at `url` names, one address or block a line. Rejects
 * when there is no first list: do not listen.
 */
export async function createApp(url: string): Promise<Express> {
  const allow = liveAllowlist({
    async load(signal) {
      const response = await fetch(url, { signal });
      if (!response.ok) throw new Error(`the list: ${response.status}`);
      return (await response.text()).trim().split(/\s+/);
    },
  });
  await allow.ready();
  return express().use(ipAllowlist({ allow }));
}
