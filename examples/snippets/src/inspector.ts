import {
  inspector,
  type InspectorOptions,
} from "@countersign/devtools/inspector";

/**
 * In development, before the platform listens; `checks` are the very options
 * of its checks.
 */
export async function startInspector(
  checks: InspectorOptions,
): Promise<() => Promise<void>> {
  const running = await inspector({ ...checks, port: 4100 });
  console.log(`inspector  ${running.pageUrl}`);
  return () => running.close();
}
