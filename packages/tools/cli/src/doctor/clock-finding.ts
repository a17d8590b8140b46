import type { Finding, Found } from "./findings.ts";

// The Date field has whole seconds, and a question takes time; a signature's window is wider by far.
const toleratedMs = 5000;

/** What another clock is off by, read between `sentMs` and `receivedMs` of this machine's. */
export function clockFinding(
  found: Found,
  { theirsMs, sentMs, receivedMs }: { theirsMs: number; sentMs: number; receivedMs: number },
): readonly Finding[] {
  const off = theirsMs < sentMs ? theirsMs - sentMs : Math.max(0, theirsMs - receivedMs);
  if (!Number.isFinite(off) || Math.abs(off) <= toleratedMs) return [];
  const seconds = Math.round(Math.abs(off) / 1000);
  return [found("clock-off", `its clock is ${seconds} s ${off > 0 ? "ahead of" : "behind"} this machine's`)];
}
