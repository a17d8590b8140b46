import { createCipheriv, createDecipheriv, randomBytes, type KeyObject } from "node:crypto";

export interface KeptAnswer {
  readonly status: number;
  /** In lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
}

/** An answer's key and attempt: its record is good for no other. */
export interface AnswerPlace {
  readonly key: string;
  readonly token: string;
}

/** A key of AES-256-GCM, with its name in records. */
export interface AnswerKey {
  readonly id: string;
  readonly key: KeyObject;
}

const plainForm = 1;
const sealedForm = 2;
// NIST SP 800-38D sections 5.2.1.1 and 8.2.2.
const ivBytes = 12;
const tagBytes = 16;

/** Encrypts under the first of `keys`; plain without any. */
export function writeRecord(answer: KeptAnswer, place: AnswerPlace, keys: readonly AnswerKey[]): Buffer {
  const { status, headers, body } = answer;
  const head = Buffer.from(JSON.stringify({ key: place.key, status, headers }));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(head.length);
  const plain = Buffer.concat([length, head, body]);
  const [first] = keys;
  if (first === undefined) return Buffer.concat([Buffer.of(plainForm), plain]);
  const iv = randomBytes(ivBytes);
  const cipher = createCipheriv("aes-256-gcm", first.key, iv);
  cipher.setAAD(boundTo(place, first.id));
  const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
  const id = Buffer.from(first.id);
  return Buffer.concat([Buffer.of(sealedForm, id.length), id, iv, cipher.getAuthTag(), sealed]);
}

/**
 * Reads the answer of a record. Throws for a changed record, one of another key or attempt, or under an unknown key; with `keys` also for
 * a plain one: write access to the store must not decide an answer.
 */
export function readRecord(record: Uint8Array, place: AnswerPlace, keys: readonly AnswerKey[]): KeptAnswer {
  const bytes = Buffer.from(record.buffer, record.byteOffset, record.byteLength);
  const [form] = bytes;
  if (form !== (keys.length === 0 ? plainForm : sealedForm)) {
    throw new Error(
      form === plainForm ? "the record is not encrypted" : "the record is of no form that is read",
    );
  }
  return readPlain(form === plainForm ? bytes.subarray(1) : unseal(bytes, place, keys), place);
}

function unseal(bytes: Buffer, place: AnswerPlace, keys: readonly AnswerKey[]): Buffer {
  const idEnd = 2 + (bytes[1] ?? 0);
  const id = bytes.toString("utf8", 2, idEnd);
  const known = keys.find((key) => key.id === id);
  if (known === undefined) throw new Error("the record is under a key that is not given");
  const ivEnd = idEnd + ivBytes;
  const tagEnd = ivEnd + tagBytes;
  const decipher = createDecipheriv("aes-256-gcm", known.key, bytes.subarray(idEnd, ivEnd), {
    authTagLength: tagBytes,
  });
  decipher.setAAD(boundTo(place, id));
  decipher.setAuthTag(bytes.subarray(ivEnd, tagEnd));
  return Buffer.concat([decipher.update(bytes.subarray(tagEnd)), decipher.final()]);
}

function boundTo({ key, token }: AnswerPlace, id: string): Buffer {
  return Buffer.from(JSON.stringify(["countersign answer", sealedForm, id, key, token]));
}

function readPlain(plain: Buffer, place: AnswerPlace): KeptAnswer {
  const headEnd = 4 + plain.readUInt32BE(0);
  if (headEnd > plain.length) throw new Error("the record is cut");
  const head: unknown = JSON.parse(plain.toString("utf8", 4, headEnd));
  if (!isHead(head) || head.key !== place.key) throw new Error("the record is of another key, or of none");
  return { status: head.status, headers: head.headers, body: plain.subarray(headEnd) };
}

interface Head extends Omit<KeptAnswer, "body"> {
  readonly key: string;
}

function isHead(value: unknown): value is Head {
  if (typeof value !== "object" || value === null) return false;
  const { key, status, headers }: { key?: unknown; status?: unknown; headers?: unknown } = value;
  return (
    typeof key === "string" &&
    typeof status === "number" &&
    isKeptStatus(status) &&
    Array.isArray(headers) &&
    headers.every(isLine)
  );
}

// RFC 9110 sections 5.1 and 5.5: a store must not return what no adapter can send.
export const fieldName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/;

function isLine(line: unknown): boolean {
  if (!Array.isArray(line) || line.length !== 2) return false;
  const [name, value]: readonly unknown[] = line;
  return (
    typeof name === "string" && fieldName.test(name) && typeof value === "string" && fieldValue.test(value)
  );
}

/** True for a success that can be repeated: not a part (206). */
export function isKeptStatus(status: unknown): boolean {
  return (
    typeof status === "number" && Number.isInteger(status) && status >= 200 && status < 300 && status !== 206
  );
}
