import type { ParsedJson } from "@countersign/core";
import { isLosslessNumber, parse } from "lossless-json";
import { parsedJson } from "./check.ts";

const arrayIndex = /^(?:0|[1-9]\d*)$/;

// Few handlers ask for digits: the second parse happens at the first question and once.
const losslessTrees = new WeakMap<ParsedJson, unknown>();

/**
 * The digits of a JSON number exactly as received, for example `numberTextAt(req, "/amount/value")` is "10.10" where the
 * parsed value is 10.1. `pointer` is a JSON Pointer (RFC 6901). Undefined where no number is. Throws when jsonBody() did not run.
 */
export function numberTextAt(subject: object, pointer: string): string | undefined {
  const tokens = parsePointer(pointer);
  const parsed = parsedJson(subject);
  if (parsed === undefined) throw new Error("numberTextAt: mount jsonBody() before the handler that asks");
  let value = losslessTree(parsed);
  for (const token of tokens) value = childAt(value, token);
  return isLosslessNumber(value) ? value.value : undefined;
}

function losslessTree(parsed: ParsedJson): unknown {
  if (losslessTrees.has(parsed)) return losslessTrees.get(parsed);
  const tree = parse(parsed.text);
  losslessTrees.set(parsed, tree);
  return tree;
}

function childAt(value: unknown, token: string): unknown {
  if (typeof value !== "object" || value === null || isLosslessNumber(value)) return undefined;
  if (Array.isArray(value) && !arrayIndex.test(token)) return undefined;
  return Object.getOwnPropertyDescriptor(value, token)?.value;
}

function parsePointer(pointer: string): readonly string[] {
  if (typeof pointer !== "string" || !/^(?:\/(?:[^/~]|~[01])*)*$/.test(pointer)) {
    throw new TypeError('numberTextAt: pointer must be a JSON Pointer such as "/amount/value" (RFC 6901)');
  }
  return pointer
    .split("/")
    .slice(1)
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}
