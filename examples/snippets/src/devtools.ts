import {
  inspector,
  type InspectorOptions,
} from "@countersign/devtools/inspector";
import { startSandbox } from "@countersign/devtools/sandbox";

/**
 * In development, before the platform listens: a page from which the lending
 * service sends, and a page of what came of it. `checks` are the very options
 * of the platform's checks.
 */
export async function startDevtools(
  apiKey: string,
  checks: InspectorOptions,
): Promise<() => Promise<void>> {
  const service = await startSandbox({ apiKey, page: true });
  const requests = await inspector(checks);
  console.log(`sandbox    ${service.pageUrl}`);
  console.log(`inspector  ${requests.pageUrl}`);
  return async () => {
    await service.close();
    await requests.close();
  };
}
