export const root: string;
export function memberFolders(from?: string): string[];
export const workspacePackages: ReadonlyMap<string, { folder: string; manifest: Manifest }>;
export const documentedParts: ReadonlyMap<string, { name: string; source: string; manifest: Manifest }>;
export function sourceFilesOf(part: string): string[];
export function packageFolder(name: string): string;
export function manifestOf(folder: string): Manifest;

export interface Manifest {
  name: string;
  version: string;
  private?: boolean;
  description: string;
  [field: string]: unknown;
}
