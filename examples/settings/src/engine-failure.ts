import { z } from "zod";

// By the codes of Node and its fetch, of PostgreSQL (SQLSTATE), and the first word of an error of Redis.
const failures: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nobody listens there",
  ECONNRESET: "the connection was reset",
  UND_ERR_SOCKET: "the connection was ended",
  ENOENT: "its socket is not there",
  ENOTFOUND: "its host has no address",
  EAI_AGAIN: "its host has no address",
  ETIMEDOUT: "no answer",
  EHOSTUNREACH: "its host cannot be reached",
  ENETUNREACH: "its host cannot be reached",
  "28P01": "user name or password are wrong",
  "28000": "the server does not know this user, or refuses it from here",
  "3D000": "there is no such database",
  "42501": "the user lacks a privilege",
  "53300": "the server has no connection left",
  "57P03": "the server is starting or stopping",
  WRONGPASS: "user name or password are wrong",
  NOAUTH: "a password is needed",
  NOPERM: "the user lacks a privilege",
};

/**
 * Why a server cannot be used, in words that hold nothing of its URL: a driver's message may quote what it took for the host
 * out of a password.
 */
export function failureOf(error: unknown): string {
  const { code, message, name } = failureSchema.parse(error);
  const [word = ""] = message.split(" ", 1);
  const known = failures[code ?? word] ?? failures[word];
  if (known !== undefined) return known;
  if (/time-?d? ?out|timeout/i.test(message)) return "no answer";
  if (/password/i.test(message)) return "a password is needed";
  if (/DB index is out of range/i.test(message)) return "it has no database of this number";
  if (message === "bad port") return "fetch refuses its port";
  if (/^Socket closed/i.test(message)) return "it ended the connection: something else listens there";
  if (/certificate|SSL|TLS/i.test(message)) return `TLS fails${code === undefined ? "" : `: ${code}`}`;
  return code ?? name;
}

// Drivers throw errors, but also what only looks like one.
const failureSchema = z
  .object({
    code: z.string().optional().catch(undefined),
    message: z.string().catch(""),
    name: z.string().catch("Error"),
  })
  .catch({ code: undefined, message: "", name: "unknown error" });
