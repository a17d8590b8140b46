import { refusalExplainer } from "@countersign/explain";
import { pinoLog, type FieldLogger } from "@countersign/log";

/** Each refusal, and behind it, up to ten times a minute, what its signer has to change. */
export function startLog(logger: FieldLogger, keys: Readonly<Record<string, string>>): () => void {
  return pinoLog(logger, { explain: refusalExplainer({ keys }) });
}
