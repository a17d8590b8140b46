import { assertOpen, assertText, decodeText, encodeText } from "@countersign/idempotency/store";

const rows = new Map<string, string>();
let closed = false;

export function remember(key: string, token: string): void {
  assertOpen("my store", closed);
  assertText("my store", "key", key);
  assertText("my store", "token", token);
  rows.set(encodeText(key), encodeText(token));
}

export function tokenOf(key: string): string | undefined {
  const stored = rows.get(encodeText(key));
  return stored === undefined ? undefined : decodeText(stored);
}

export function close(): void {
  closed = true;
}
