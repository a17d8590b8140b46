import {
  decodeText,
  encodeText,
  StoreGate,
} from "@countersign/idempotency/store";

const rows = new Map<string, string>();
const gate = new StoreGate("my store");

export function remember(key: string, token: string): void {
  gate.assertOwner(key, token);
  rows.set(encodeText(key), encodeText(token));
}

export function tokenOf(key: string): string | undefined {
  const stored = rows.get(encodeText(key));
  return stored === undefined ? undefined : decodeText(stored);
}

export function close(): void {
  gate.close();
}
