import { createWarnOnce } from "@countersign/core/internal";
import type { GuardRequest, GuardResponse } from "./types.ts";

/**
 * Returns a function that warns once, `digest-of-other-bytes`, when an answer's content coding changes before it leaves: a middleware
 * before `factoryName` has encoded it after its digest.
 */
export function createCodingWatch(factoryName: string): (req: GuardRequest, res: GuardResponse) => void {
  const warnOnce = createWarnOnce(factoryName);
  const code = "digest-of-other-bytes";
  const message =
    `something in front of ${factoryName}() has encoded an answer after its digest, which is wrong by that: ` +
    `mount ${factoryName}() before compression`;
  return (req, res) => {
    const before = res.getHeader("content-encoding");
    res.once("finish", () => {
      if (res.getHeader("content-encoding") !== before) warnOnce({ code, message, req });
    });
  };
}
