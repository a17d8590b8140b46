import { hash } from "node:crypto";
import type { EventDelivery } from "./webhook-handler-types.ts";

// A fingerprint has at most 128 characters, of which the time takes 30.
const shortType = /^[\w.:-]{1,64}$/;

/** What is kept of an event beside its id: its time as received, and its type or the digest of a long one. */
export function eventFingerprint({ type, event }: EventDelivery): string {
  const kept = shortType.test(type) ? type : `#${hash("sha256", type, "base64url")}`;
  return `${event?.timestamp.raw ?? "invalid"} ${kept}`;
}

/** Whether both name a type, and not the same one. Who writes to the store by hand may name none. */
export function differsInType(fingerprint: string, other: string): boolean {
  const [type, otherType] = [typeIn(fingerprint), typeIn(other)];
  return type !== undefined && otherType !== undefined && type !== otherType;
}

function typeIn(fingerprint: string): string | undefined {
  const space = fingerprint.indexOf(" ");
  return space === -1 ? undefined : fingerprint.slice(space + 1);
}
