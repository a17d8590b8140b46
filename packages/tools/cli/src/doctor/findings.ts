import { memberOf } from "../command-io.ts";
import { pageText, wordsOf } from "../explain/codes.ts";

/** `error` makes the command exit with 1, `warning` only with --strict, `info` never. */
export type Severity = "error" | "warning" | "info";

export interface Finding {
  readonly id: FindingId;
  readonly severity: Severity;
  readonly subject: string;
  readonly message: string;
  /** What the app has answered. */
  readonly code?: string | undefined;
}

/** Each finding with its usual severity and its remedy, which the page of findings shows. */
export const findingKinds = {
  "app-failed": ["error", "Run the module by itself with the same environment, and mend what it says."],
  "app-listens": ["info", "Export the app, or a function that makes it, from a module that does not listen."],
  "app-unknown": ["warning", "Export the Express or Fastify app, or what makes it, as app or default."],
  "options-refused": ["error", "Change the option as the message says."],
  "credentials-empty": ["error", "Set the variable that the option is read from; do not start without it."],
  "credentials-short": ["warning", "Run countersign endpoint create --generate: new ones, newly registered."],
  "no-guards": ["error", "Mount payoutEndpoint or webhookEndpoint, built when the module is loaded."],
  "parser-before-guard": [
    "error",
    "Mount the guard first, or write express.json({ verify: captureRawBody }).",
  ],
  "parser-in-front": [
    "info",
    "Compare: express.json({ verify: captureRawBody }) is right, without verify each payout is 500.",
  ],
  "endpoint-wrapped": [
    "warning",
    'Give the route the endpoint itself, as in router.post("/transaction", endpoint).',
  ],
  "hook-before-body": ["error", "Make idempotencyHook a preHandler of the route."],
  "connection-unset": ["warning", "Behind a proxy, list it in trustProxy; give clientAddress and scheme."],
  "trust-proxy-everybody": [
    "error",
    'List your proxies: app.set("trust proxy", ["10.0.0.5"]), or trustProxy.',
  ],
  "trust-proxy-misread": ["error", "Write hops as a number, or addresses and CIDR blocks as texts."],
  "trust-proxy-unset": ["warning", 'Behind a proxy, write app.set("trust proxy", [its addresses]).'],
  "address-any": ["warning", "List the addresses from which the service calls."],
  "memory-store": ["error", "Use the stores of a database or of Redis in production."],
  "components-missing": ["error", "Add the named components, or leave requiredComponents at its default."],
  "body-unsigned": ["error", "Leave allowUnsignedBody out: a signature then covers the body by its digest."],
  "query-unsigned": ["warning", "Require @query or @target-uri, or leave allowUnsignedQuery out."],
  "nonce-missing": ["warning", "Require the parameter nonce, with a store, unless a replay does no harm."],
  "key-refused": ["error", "Ask its owner for the public key, and vet it with countersign keys check."],
  "key-none-valid": ["error", "Get a key that is valid now from the signer."],
  "key-expired": ["warning", "Take the key out of the configuration."],
  "key-revoked": ["warning", "Take the key out of the configuration."],
  "key-not-yet-valid": ["warning", "Compare notBefore with the date that you agreed on with the signer."],
  "key-ends-soon": ["warning", "Get the signer's next key, and configure both until the change."],
  "key-duplicate": ["warning", "Give each key one keyid: ask the signer which one is right."],
  "key-for-tests": ["error", "Take the key out of what runs in production."],
  "beneficiary-unchecked": [
    "warning",
    "Give payoutEndpoint a findBusiness that knows your customers' IBANs.",
  ],
  "webhook-http": ["warning", "Leave dangerouslyAllowHttp out where others can reach the platform."],
  "keys-not-listable": ["warning", "Give your store a list(), which countersign keys held needs."],
  "retention-short": ["warning", "Raise retentionMs above the longest time after which the service retries."],
  "url-unguarded": ["error", "Mount payoutEndpoint or webhookEndpoint on this path, before the handler."],
  "url-not-found": ["info", "Compare the path with the one on which the endpoint is mounted."],
  "url-error": ["error", "Read what the app wrote on stderr for this request."],
  "url-plain-http": ["warning", "Put TLS in front, and give the service an https URL."],
  "url-unreachable": ["error", "Start the app, and compare host, port and certificate."],
  "clock-off": ["error", "Set both clocks by NTP, and check that it works."],
  "store-unreachable": ["error", "Compare the store's address and credentials; check that it runs."],
  "tables-missing": ["error", "Run countersign migrate with this store's URL, --schema and --table."],
  "migration-pending": [
    "error",
    "Except on SQLite: run countersign migrate. Then start this release's processes.",
  ],
  "tables-newer": ["error", "Install the release of the stores that brought the tables up to date."],
  "tables-unlogged": ["error", "Run ALTER TABLE … SET LOGGED on each of the tables."],
  "tables-without-key": ["error", "Run what is shown, as the owner of the tables."],
  "postgres-fsync": ["error", "Set fsync = on in postgresql.conf, and restart the server."],
  "postgres-full-page-writes": ["warning", "Set full_page_writes = on, unless the disk writes whole pages."],
  "postgres-synchronous-commit": ["warning", "Set synchronous_commit = on for your payments' role."],
  "postgres-standby": ["error", "Connect to the primary server."],
  "postgres-encoding": ["error", "Create the database WITH ENCODING 'UTF8'."],
  "postgres-other": ["error", "Use PostgreSQL 13 or newer."],
  "postgres-old": ["error", "Upgrade the server to PostgreSQL 13 or newer."],
  "mysql-other": ["error", "Use MySQL 8.0 or newer, or MariaDB 10.6 or newer."],
  "mysql-old": ["error", "Upgrade the server to MySQL 8.0 or MariaDB 10.6, or newer."],
  "mysql-read-only": ["error", "Connect to the primary server."],
  "mysql-flush": ["error", "Set innodb_flush_log_at_trx_commit = 1."],
  "mysql-binlog": ["warning", "Set sync_binlog = 1, or accept that a crash can forget paid keys."],
  "tables-refused": ["error", "Run what is shown, as a user who may ALTER the tables."],
  "redis-evicts": ["error", "Set maxmemory-policy noeviction, and give Redis the memory that it needs."],
  "redis-forgets": ["error", "Set appendonly yes."],
  "redis-appendfsync": ["warning", "Set appendfsync always, or accept that a crash forgets the last second."],
  "redis-replica": ["error", "Connect to the primary server."],
  "redis-old": ["error", "Upgrade the server to Redis 6.2 or newer."],
  "redis-unreadable": ["info", "Check maxmemory-policy, appendonly and appendfsync by hand."],
  "sqlite-journal": ["warning", "Open the file once with createStores on a local disk: it sets WAL."],
  "sqlite-synchronous": ["warning", "Run PRAGMA synchronous = FULL on connections that write payments."],
  "keys-held": ["warning", "Run countersign keys held, and decide about each."],
  "tasks-dead": [
    "warning",
    "Run countersign work list --queue NAME --state dead; mend the cause, then retry.",
  ],
  "tasks-old": ["warning", "Run countersign work status; check that a worker of the queue runs."],
  "queue-paused": ["warning", "Run countersign work resume --queue NAME when the reason is gone."],
} as const satisfies Readonly<Record<string, readonly [severity: Severity, remedy: string]>>;

export type FindingId = keyof typeof findingKinds;

export type Found = (id: FindingId, message: string, severity?: Severity) => Finding;

export function findingsOf(subject: string): Found {
  return (id, message, severity = findingKinds[id][0]) => ({ id, severity, subject, message });
}

let causes: ReadonlyMap<string, string> | undefined;

/** What the page of findings says of one, without the network. Read once, and by no command that tells none. */
export function causeOf(id: FindingId): string {
  causes ??= readCauses(pageText("guide/doctor"));
  return causes.get(id) ?? "";
}

// Of each section the first paragraph repeats severity and remedy; the others say why it matters.
function readCauses(page: string): ReadonlyMap<string, string> {
  const [, ...sections] = page.split(/^### /m);
  return new Map(
    sections.map((section) => {
      const [own = ""] = section.split("\n## ");
      const [id = "", , ...paragraphs] = own.trim().split("\n\n");
      return [id, wordsOf(paragraphs.join(" ").replaceAll("\n", " "))];
    }),
  );
}

export type Doubt = readonly [id: FindingId, message: string];

/** `says` gives false if all is well, several texts for several places. */
export type Row<T> = readonly [id: FindingId, says: (subject: T) => string | false | readonly string[]];

export function doubtsOf<T>(rows: readonly Row<T>[], subject: T): readonly Doubt[] {
  return rows.flatMap(([id, says]) =>
    [says(subject)].flat().flatMap((text): Doubt[] => (text === false ? [] : [[id, text]])),
  );
}

export interface StoreCondition {
  readonly doubts: readonly Doubt[];
  /** Undefined if the engine uses this machine's clock. */
  readonly clock?: ClockReading | undefined;
}

/** Another clock, read between two times of this machine's. */
interface ClockReading {
  readonly theirsMs: number;
  readonly sentMs: number;
  readonly receivedMs: number;
}

/** As the tables have it. */
export interface SchemaVersion {
  readonly version: number;
  /** The oldest version whose processes may use them. Undefined where the tables do not say. */
  readonly oldest: number | undefined;
}

export function schemaVersionOf(row: unknown): SchemaVersion {
  const oldest = memberOf(row, "oldest") ?? undefined;
  return {
    version: Number(memberOf(row, "version") ?? 0),
    oldest: oldest === undefined ? undefined : Number(oldest),
  };
}

export function isError([id]: Doubt): boolean {
  return findingKinds[id][0] === "error";
}

/** True for the tables of this release, and for those of a later one that takes this one's processes beside its own. */
function isUsableVersion(found: SchemaVersion | undefined, needed: number): boolean {
  if (found === undefined || found.version < needed) return false;
  return found.version === needed || (found.oldest !== undefined && found.oldest <= needed);
}

export function versionDoubts(
  found: SchemaVersion | undefined,
  needed: number,
  tables: string,
): readonly Doubt[] {
  if (found === undefined) return [["tables-missing", `there are no tables ${tables}`]];
  if (isUsableVersion(found, needed)) return [];
  const { version } = found;
  const message = `the tables ${tables} have schema version ${version}, this release needs ${needed}`;
  return [[version < needed ? "migration-pending" : "tables-newer", message]];
}

// The Date field has whole seconds, and a request takes time; a signature's window is far wider.
const toleratedMs = 5000;

export function clockFinding(found: Found, { theirsMs, sentMs, receivedMs }: ClockReading) {
  const off = theirsMs < sentMs ? theirsMs - sentMs : Math.max(0, theirsMs - receivedMs);
  if (!Number.isFinite(off) || Math.abs(off) <= toleratedMs) return [];
  const seconds = Math.round(Math.abs(off) / 1000);
  return [found("clock-off", `its clock is ${seconds} s ${off > 0 ? "ahead of" : "behind"} this machine's`)];
}
