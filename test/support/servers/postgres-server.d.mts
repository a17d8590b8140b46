export interface PostgresServer {
  /** Of its superuser, who needs no password. */
  readonly url: string;
  readonly port: number;
  readonly pid: number | undefined;
  /** `fast`: rolls back and disconnects everybody. `immediate`: as a crash; the next start recovers. `kill`: without its children. */
  stop(mode?: "fast" | "immediate" | "kill"): Promise<void>;
  /** Starts it again on the same data and port. */
  start(): Promise<void>;
  close(): Promise<void>;
}

export interface PostgresAddress {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
  readonly timeoutMs?: number;
}

export function startPostgresServer(options?: {
  readonly settings?: Readonly<Record<string, string | number>>;
  readonly standbyOf?: PostgresServer | undefined;
}): Promise<PostgresServer | undefined>;
export function postgresAnswers(address: PostgresAddress): Promise<boolean>;
