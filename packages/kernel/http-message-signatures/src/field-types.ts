import type { StructuredFieldType } from "./structured-field.ts";

/** Types of fields that a caller adds to those of the registry, by lower-case name. */
export type FieldTypes = Readonly<Record<string, StructuredFieldType>>;

// The column "Structured Type" of the IANA HTTP Field Name registry, as far as fields of requests and answers are signed.
const registered: ReadonlyMap<string, StructuredFieldType> = new Map(
  Object.entries({
    dictionary: [
      "accept-signature",
      "cdn-cache-control",
      "content-digest",
      "priority",
      "repr-digest",
      "reporting-endpoints",
      "signature",
      "signature-input",
      "want-content-digest",
      "want-repr-digest",
    ],
    item: [
      "capsule-protocol",
      "client-cert",
      "cross-origin-embedder-policy",
      "cross-origin-opener-policy",
      "origin-agent-cluster",
      "sec-ch-ua-mobile",
      "sec-ch-ua-platform",
      "sec-fetch-dest",
      "sec-fetch-mode",
      "sec-fetch-site",
      "sec-fetch-user",
    ],
    list: ["accept-ch", "cache-status", "client-cert-chain", "proxy-status", "sec-ch-ua"],
  } satisfies Record<StructuredFieldType, readonly string[]>).flatMap(([type, names]) =>
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Object.entries forgets the names of members
    names.map((name) => [name, type as StructuredFieldType] as const),
  ),
);

/** The type of a structured field; undefined when it is not known. The registry is not overridden. */
export function fieldTypeOf(name: string, added: FieldTypes | undefined): StructuredFieldType | undefined {
  const known = registered.get(name);
  if (known !== undefined || added === undefined) return known;
  return Object.hasOwn(added, name) ? added[name] : undefined;
}
