export interface RedisServer {
  readonly url: string;
  readonly port: number;
  readonly pid: number | undefined;
  stop(): Promise<void>;
  /** Ends it as a crash does. */
  kill(): Promise<void>;
  /** Starts it again on the same port, and on the same data when it persists. */
  start(): Promise<void>;
  close(): Promise<void>;
}

export interface RedisAddress {
  readonly host: string;
  readonly port: number;
  readonly timeoutMs?: number;
}

export interface RedisServerOptions {
  readonly args?: readonly string[];
  /** Every write is on the disk before it is answered. Default false: a restart forgets everything. */
  readonly persist?: boolean;
}

export function startRedisServer(options?: RedisServerOptions): Promise<RedisServer | undefined>;
export function redisAnswers(address: RedisAddress): Promise<boolean>;
export function redisCommand(
  command: RedisAddress & { readonly command: string },
): Promise<string | undefined>;
