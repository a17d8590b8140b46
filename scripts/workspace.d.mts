export const root: string;
export function memberFolders(from?: string): string[];
export const workspacePackages: ReadonlyMap<string, { folder: string; manifest: Manifest }>;
export function packageFolder(name: string): string;
export function manifestOf(folder: string): Manifest;

export interface Manifest {
  name: string;
  version: string;
  private?: boolean;
  description: string;
  [field: string]: unknown;
}
