import type { Owner } from "./private-process.mjs";

export function postgresFolder(): string | undefined;
export function redisServer(): string | undefined;
export function mariadbPrograms(): Readonly<Record<"install" | "server", string | undefined>>;

export function mysqlProgram(): { readonly command: string; readonly args: readonly string[] } | undefined;
export function pgbouncer(): string | undefined;
export function unprivilegedOwner(): Owner | undefined;
export function reportMissing(server: string, consequence: string): void;
export function reportLeftOut(text: string): void;
export function notTested(texts: readonly string[]): string;
export function isContinuousIntegration(): boolean;
