// A key that is revoked at its source: every store that remembers keys forgets it when it is told to, whatever is under way.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, describe, expect, test } from "@jest/globals";
import * as verify from "@countersign/http-signature-verify";
import { servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";
import { answer, eventually, setOf } from "./live-keys-bench.ts";
import type { CachingKeyStore } from "@countersign/http-signature-verify";

/** Where keys are published: what a store under test reads. */
interface Source {
  /** Publishes just these keyids. */
  publish(...keyids: string[]): void;
  /** Lets every reading fail until keys are published again. */
  fail(): void;
  /** Lets the next reading see the keys of now, and end when the returned function is called. */
  hold(): () => void;
  readonly store: CachingKeyStore;
}

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** What a source on a server reads: the published keyids, undefined while it fails. */
class Published {
  #keyids: readonly string[] | undefined = [];
  #held: Promise<void> | undefined;

  publish(...keyids: string[]): void {
    this.#keyids = keyids;
  }

  fail(): void {
    this.#keyids = undefined;
  }

  hold(): () => void {
    const { promise, resolve } = deferred();
    this.#held = promise;
    return resolve;
  }

  async read(): Promise<readonly string[]> {
    const keyids = this.#keyids;
    const held = this.#held;
    this.#held = undefined;
    await held;
    if (keyids === undefined) throw new Error("the source is down");
    return keyids;
  }
}

function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((fulfil) => (resolve = fulfil));
  return { promise, resolve };
}

function onServer(open: (published: Published) => CachingKeyStore): Source {
  const published = new Published();
  const store = open(published);
  return {
    publish: (...keyids) => published.publish(...keyids),
    fail: () => published.fail(),
    hold: () => published.hold(),
    store,
  };
}

const sources: Readonly<Record<string, () => Source>> = {
  cachedKeys: () =>
    onServer((published) =>
      verify.cachedKeys(async (keyid) =>
        (await published.read()).includes(keyid) ? servicePublicPem : undefined,
      ),
    ),
  jwksKeys: () =>
    onServer((published) => {
      const fetch = async (): Promise<Response> => answer(setOf(...(await published.read())));
      const store = verify.jwksKeys("https://keys.example/jwks.json", { fetch });
      closing.push(() => store.close());
      return store;
    }),
  directoryKeys: () => {
    const folder = mkdtempSync(path.join(tmpdir(), "countersign-forgotten-"));
    const file = path.join(folder, "keys.jwks");
    writeFileSync(file, JSON.stringify(setOf("other")));
    const store = verify.directoryKeys(file);
    closing.push(() => {
      store.close();
      rmSync(folder, { recursive: true });
    });
    return {
      publish: (...keyids) => writeFileSync(file, JSON.stringify(setOf(...keyids))),
      fail: () => rmSync(file, { force: true }),
      // Reading a file cannot be held: it is under way when it is forgotten, and may have read either.
      hold: () => () => {},
      store,
    };
  },
};

test("every store of keys that remembers them is in the table", () => {
  const factories = Object.keys(verify).filter((name) => /^(?!read)\w+Keys$/.test(name));
  expect(new Set(Object.keys(sources))).toEqual(new Set(factories));
});

describe.each(Object.entries(sources))("forget() of %s", (name, make) => {
  const known = async (store: CachingKeyStore, keyid: string): Promise<string | undefined> =>
    (await store.get(keyid))?.keyid;

  test.each([["by its keyid"], ["with all others"]])(
    "refuses a revoked key at once, forgotten %s",
    async (how) => {
      const { store, publish } = make();
      publish("stolen", "other");
      expect([await known(store, "stolen"), await known(store, "other")]).toEqual(["stolen", "other"]);
      publish("other");
      if (how === "by its keyid") store.forget("stolen");
      else store.forget();
      expect([await known(store, "stolen"), await known(store, "other")]).toEqual([undefined, "other"]);
    },
  );

  test("takes a key again that its source still has", async () => {
    const { store, publish } = make();
    publish("a", "b");
    await store.get("a");
    store.forget("a");
    expect([await known(store, "a"), await known(store, "b")]).toEqual(["a", "b"]);
  });

  test.each([["by its keyid"], ["with all others"]])(
    "drops what a look-up under way has read before, and its requests get the later answer: %s",
    async (how) => {
      const { store, publish, hold } = make();
      publish("stolen", "other");
      const release = hold();
      const waiting = known(store, "stolen");
      publish("other");
      if (how === "by its keyid") store.forget("stolen");
      else store.forget();
      const later = known(store, "stolen");
      await eventually(async () => expect(await known(store, "other")).toBe("other"));
      release();
      expect([await waiting, await later, await known(store, "stolen")]).toEqual([
        undefined,
        undefined,
        undefined,
      ]);
    },
  );

  test("does not use a forgotten key while its source is down", async () => {
    const { store, publish, fail } = make();
    publish("stolen", "other");
    await Promise.all([store.get("stolen"), store.get("other")]);
    fail();
    store.forget("stolen");
    await expect(known(store, "stolen")).rejects.toThrow();
    // Again within the cool-down.
    await expect(known(store, "stolen")).rejects.toThrow();
    expect(await known(store, "other")).toBe("other");
    store.forget();
    await expect(known(store, "other")).rejects.toThrow();
  });

  test("finds a new key that was unknown a moment ago", async () => {
    const { store, publish } = make();
    publish("other");
    expect(await known(store, "next")).toBeUndefined();
    publish("other", "next");
    store.forget("next");
    expect(await known(store, "next")).toBe("next");
  });

  test.each([null, 5, {}, ["a"]])("throws for %j, which forgets nothing", (keyid) => {
    const { store } = make();
    expect(() => store.forget(keyid as never)).toThrow(new RegExp(`^${name}: .*keyid`));
  });
});
