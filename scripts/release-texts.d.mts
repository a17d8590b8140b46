export function composeChangelog(text: string, version: string, date: string): string;
export function raisePeers(manifest: string, version: string, isOwn: (name: string) => boolean): string;
export function supportedVersions(text: string, version: string): string;
