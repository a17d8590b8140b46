import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect } from "@jest/globals";
import { directoryKeys, type LiveKeyStore } from "@countersign/http-signature-verify";
import { eventually, freshPem, hearNotices } from "./live-keys-bench.ts";
import type { DirectoryKeysOptions } from "../dist/directory-keys.js";

/** An empty directory for keys, the store that follows it, and what that tells. */
export class KeyFolder {
  readonly parent: string = mkdtempSync(path.join(tmpdir(), "countersign-keys-"));
  readonly directory: string = path.join(this.parent, "keys");
  readonly notices: ReturnType<typeof hearNotices> = hearNotices();
  store: LiveKeyStore | undefined;

  constructor() {
    mkdirSync(this.directory);
  }

  put(name: string, content: string = freshPem()): void {
    writeFileSync(path.join(this.directory, name), content);
  }

  open(options: DirectoryKeysOptions = {}, place: string = this.directory): LiveKeyStore {
    // So long that polling is not what a test sees, unless it asks for it.
    this.store = directoryKeys(place, { pollSeconds: 3600, ...options });
    return this.store;
  }

  keyids(): Set<string> {
    return new Set(this.store?.keys().map(({ keyid }) => keyid));
  }

  until(...expected: string[]): Promise<void> {
    return eventually(() => expect(this.keyids()).toEqual(new Set(expected)));
  }

  untilTold(text: RegExp): Promise<void> {
    return eventually(() =>
      expect(this.notices.heard.map(({ error }) => String(error)).join("\n")).toMatch(text),
    );
  }

  close(): void {
    this.store?.close();
    this.notices.stop();
    rmSync(this.parent, { recursive: true });
  }
}
