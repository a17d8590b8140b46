import { refusalExplainer } from "@countersign/cli/explain";
import type { Keys } from "@countersign/http-signature-verify";
import { pinoLog, type FieldLogger } from "@countersign/observe/log";

/**
 * Each refusal, and after it, up to ten times a minute, what its signer has
 * to change.
 */
export function startLog(logger: FieldLogger, keys: Keys): () => void {
  return pinoLog(logger, { explain: refusalExplainer({ keys }) });
}
