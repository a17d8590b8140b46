import type { ChildProcess, SpawnOptions } from "node:child_process";

/** The user that a process runs as; the present one when empty. */
export interface Owner {
  readonly uid?: number;
  readonly gid?: number;
}

/** A temporary folder that goes with the test process at the latest. */
export interface PrivateFolder {
  readonly path: string;
  remove(): void;
}

export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly folder: string;
  readonly owner?: Owner;
  readonly isReady: () => Promise<boolean>;
  /** Default 20,000. */
  readonly withinMs?: number;
}

export interface Question {
  readonly host: string;
  readonly port: number;
  readonly request: Uint8Array | string;
  readonly isEnough: (answer: Buffer) => boolean;
  readonly timeoutMs?: number;
}

export function spawnPrivate(command: string, args: readonly string[], options?: SpawnOptions): ChildProcess;
export function privateFolder(purpose: string, owner?: Owner): PrivateFolder;
export function startServer(command: ServerCommand): Promise<ChildProcess>;
export function endProcess(child: ChildProcess, signal: NodeJS.Signals): Promise<void>;
export function freePort(): Promise<number>;
export function ask(question: Question): Promise<Buffer | undefined>;
