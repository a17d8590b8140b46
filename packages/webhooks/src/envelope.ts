import { GuardError } from "@countersign/guard";
import { parseJsonBytes } from "@countersign/raw-body";
import { envelopeSchema, identifiedSchema, schemaFor, type IdentifiedEvent } from "./envelope-schema.ts";
import type { InvalidWebhookEvent, WebhookEnvelope, WebhookEvent } from "./events.ts";

const maxDepth = 64;

/**
 * Reads the body of a webhook (spec, "Webhook envelope"): strict JSON, further fields kept, events of unknown types kept.
 * Throws a GuardError 400 with a `json-…` code, or `envelope-invalid` when the envelope or the identity of an event is wrong.
 * An event whose time or data is wrong is no reason to throw: it goes to `invalid`.
 */
export function parseWebhookEnvelope(bytes: Uint8Array): WebhookEnvelope {
  const { value } = parseJsonBytes(asBuffer(bytes), maxDepth);
  const { data: envelope, error } = envelopeSchema.safeParse(value);
  if (error !== undefined) throw envelopeInvalid(error.issues);
  const events: WebhookEvent[] = [];
  const invalid: InvalidWebhookEvent[] = [];
  envelope.events.forEach((received, index) => {
    const { data: event, error: fault } = schemaFor(received).safeParse(received);
    if (fault === undefined) {
      events.push(event);
      return;
    }
    const { data: identified, error: identityFault } = identifiedSchema.safeParse(received);
    // At the first one: to find the faults of half a million events takes seconds.
    if (identityFault !== undefined) {
      throw envelopeInvalid(identityFault.issues.map((issue) => inEvent(issue, index)));
    }
    invalid.push(invalidEvent(identified, index, fault.issues));
  });
  // V8 is slow at adding a member to a copy, so `invalid` stands before it; behind it, it wins over a field of that name.
  const copy = { invalid, ...envelope };
  return { ...copy, events, invalid };
}

interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

function inEvent({ path, message }: Issue, index: number): Issue {
  return { path: ["events", index, ...path], message };
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function invalidEvent(
  received: IdentifiedEvent,
  index: number,
  issues: readonly Issue[],
): InvalidWebhookEvent {
  const { event_id, type } = received;
  const code = issues[0]?.path[0] === "timestamp" ? "timestamp-invalid" : "data-invalid";
  const detail = issues.map((issue) => describe(issue, ["events", index])).join("; ");
  return { index, event_id, type, code, detail, raw: received };
}

function envelopeInvalid(issues: readonly Issue[]): GuardError {
  const [first] = issues;
  const count = issues.length > 1 ? ` (${issues.length} faults in all)` : "";
  return new GuardError({
    status: 400,
    code: "envelope-invalid",
    message: `the webhook breaks the schema: ${first === undefined ? "" : describe(first, [])}${count}`,
  });
}

// The path holds positions and the names that the schema knows, so that nothing in it needs escaping (RFC 6901 section 3).
function describe({ path, message }: Issue, parent: readonly PropertyKey[]): string {
  const pointer = [...parent, ...path].map((part) => `/${String(part)}`).join("");
  return `${pointer === "" ? "the body" : pointer} ${message}`;
}
