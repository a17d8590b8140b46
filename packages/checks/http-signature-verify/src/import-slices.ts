import { workSlices } from "@countersign/core/door";
import type { ImportedKeys } from "@countersign/http-message-signatures";
import { keyDocuments } from "@countersign/http-message-signatures/door";

type Importing = typeof keyDocuments.importEach;

/** As importKeys(), while requests are served: a large document takes longer than they may wait. */
export async function importInSlices(...given: Parameters<Importing>): Promise<ImportedKeys> {
  const importing = keyDocuments.importEach(...given);
  for (;;) {
    const { done, value } = importing.next();
    if (done === true) return value;
    // oxlint-disable-next-line no-await-in-loop -- yields to the event loop
    while (workSlices.over) await workSlices.next();
  }
}
