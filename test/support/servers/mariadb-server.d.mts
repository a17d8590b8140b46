export interface MariadbServer {
  readonly url: string;
  readonly port: number;
  /** Ends it as a crash does. */
  kill(): Promise<void>;
  /** From here on it is silent, and its connections stay. */
  pause(): void;
  resume(): void;
  /** Starts it again on the same port and data. */
  start(): Promise<void>;
  close(): Promise<void>;
}

export interface MariadbAddress {
  readonly host: string;
  readonly port: number;
  readonly timeoutMs?: number;
}

export function startMariadbServer(options?: readonly string[]): Promise<MariadbServer | undefined>;
export function mariadbGreets(address: MariadbAddress): Promise<boolean>;
