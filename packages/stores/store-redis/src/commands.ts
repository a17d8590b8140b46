import { randomUUID } from "node:crypto";
import { withDeadline } from "@countersign/core";
import type { ResolvedRedisOptions } from "./options.ts";
import { plain, unexpected } from "./replies.ts";
import type { RedisScript } from "./scripts.ts";

type Send = (command: readonly string[], key: string | undefined) => Promise<unknown>;

/** Sends one command; fails when it takes longer than `commandTimeoutMs`. */
export async function send(options: ResolvedRedisOptions, command: readonly string[]): Promise<unknown> {
  return await inTime(options, (sendNow) => sendNow(command, undefined));
}

/** Runs a script by digest, or by text. Fails on another command's reply: a client can be out of step after a broken connection. */
export async function runScript(
  options: ResolvedRedisOptions,
  { sha1, text }: RedisScript,
  key: string | undefined,
  args: readonly string[],
): Promise<unknown> {
  const call = randomUUID();
  const rest = [...(key === undefined ? ["0"] : ["1", key]), ...args, call];
  return await inTime(options, async (sendNow) => {
    try {
      return answerTo(call, await sendNow(["EVALSHA", sha1, ...rest], key));
    } catch (error) {
      // After any other error the script may have run.
      if (!isScriptUnknown(error)) throw error;
      return answerTo(call, await sendNow(["EVAL", text, ...rest], key));
    }
  });
}

async function inTime(
  { sendCommand, commandTimeoutMs }: ResolvedRedisOptions,
  step: (sendNow: Send) => Promise<unknown>,
): Promise<unknown> {
  let sent = "";
  let isLate = false;
  const late = (): Error => {
    isLate = true;
    return new Error(
      `Redis did not answer ${sent} within ${commandTimeoutMs} ms, and may execute it all the same`,
    );
  };
  const sendNow: Send = async (command, key) => {
    // The caller has heard that the step failed: it must not begin now.
    if (isLate) throw late();
    sent = String(command[0]);
    const reply = await sendCommand(command, { key, isReadonly: false });
    // Some clients resolve to an error instead of rejecting with it.
    if (reply instanceof Error) throw reply;
    return reply;
  };
  return await withDeadline(step(sendNow), commandTimeoutMs, late);
}

function answerTo(call: string, reply: unknown): unknown {
  if (!Array.isArray(reply) || reply.length !== 2) throw unexpected();
  if (plain(reply[0]) !== call)
    throw new Error("Redis gave the reply to another command; reconnect the client");
  return reply[1];
}

// By its text: the client's errors may have another class or realm.
function isScriptUnknown(error: unknown): boolean {
  if (typeof error !== "object" || error === null || !("message" in error)) return false;
  return typeof error.message === "string" && error.message.startsWith("NOSCRIPT");
}
