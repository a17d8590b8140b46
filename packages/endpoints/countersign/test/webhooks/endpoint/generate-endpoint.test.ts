import { describe, expect, test } from "@jest/globals";
import { generateEndpoint } from "countersign/webhooks";

describe("generateEndpoint", () => {
  test.each([
    ["a bare origin", "https://platform.example", "https://platform.example", ""],
    ["a slash at the end", "https://platform.example/", "https://platform.example", ""],
    ["a port", "https://platform.example:8443", "https://platform.example:8443", ""],
    ["a path", "https://platform.example/api/webhooks", "https://platform.example", "/api/webhooks"],
    ["a path with a slash at the end", "https://platform.example/api/", "https://platform.example", "/api"],
  ])("puts a lower-case path behind %s", (_title, baseUrl, origin, prefix) => {
    const { url, path } = generateEndpoint({ baseUrl });
    expect(url).toBe(origin + path);
    expect(path.startsWith(`${prefix}/`)).toBe(true);
    expect(path.slice(prefix.length + 1)).toMatch(/^[0-9a-f]{40}$/);
  });

  test("gives credentials of at least 128 bits that need no escaping anywhere", () => {
    const { username, password, secret } = generateEndpoint({ baseUrl: "https://platform.example" });
    expect(username).toMatch(/^[0-9a-f]{32}$/);
    expect(password).toMatch(/^[0-9a-f]{64}$/);
    expect(secret).toMatch(/^[0-9a-f]{64}$/);
  });

  test("gives the same values under the names that customer support takes", () => {
    const { url, username, password, secret, supportForm } = generateEndpoint({
      baseUrl: "https://platform.example",
    });
    expect(supportForm).toEqual({
      url,
      basic_auth_username: username,
      basic_auth_password: password,
      signature_secret: secret,
    });
  });

  test("never gives a value twice", () => {
    const values = Array.from({ length: 200 }, () => {
      const { path, username, password, secret } = generateEndpoint({ baseUrl: "https://platform.example" });
      return [path, username, password, secret];
    }).flat();
    expect(new Set(values).size).toBe(800);
  });

  test.each([
    ["localhost", "http://localhost:3000"],
    ["an address of 127.0.0.0/8", "http://127.0.0.2:3000"],
    ["the IPv6 loopback address", "http://[::1]:3000"],
  ])("accepts http to %s only on request", (_title, baseUrl) => {
    expect(generateEndpoint({ baseUrl, dangerouslyAllowHttp: true }).url.startsWith(`${baseUrl}/`)).toBe(
      true,
    );
    expect(() => generateEndpoint({ baseUrl })).toThrow(/dangerouslyAllowHttp: true/);
  });

  test.each([
    ["no URL", undefined],
    ["an empty URL", ""],
    ["a relative URL", "/webhooks"],
    ["a host alone", "platform.example"],
    ["a scheme without slashes", "https:platform.example"],
    ["white space", " https://platform.example"],
    ["a line break", "https://platform.example/a\nb"],
    ["a backslash", "https://platform.example\\a"],
    ["another scheme", "ftp://platform.example"],
    ["http to another machine", "http://platform.example"],
    ["http to a name that begins like this machine", "http://localhost.evil.example"],
    ["http to a name that begins like a loopback address", "http://127.0.0.1.evil.example"],
    ["a user", "https://user@platform.example"],
    ["a password", "https://:test-secret@platform.example"],
    ["a query", "https://platform.example/?a"],
    ["an empty fragment", "https://platform.example/#"],
    ["a parameter of an Express path", "https://platform.example/:id"],
    ["a wildcard of an Express path", "https://platform.example/*all"],
    ["an empty segment", "https://platform.example//a"],
    ["an escape", "https://platform.example/%61"],
  ])("refuses %s, also with dangerouslyAllowHttp", (_title, baseUrl) => {
    const options = { baseUrl, dangerouslyAllowHttp: true } as Parameters<typeof generateEndpoint>[0];
    expect(() => generateEndpoint(options)).toThrow(
      /^generateEndpoint: option baseUrl must be (?!.*test-secret)/,
    );
  });

  test("refuses an unknown option and a doubtful one", () => {
    const baseUrl = "https://platform.example";
    expect(() => generateEndpoint({ baseUrl, path: "/x" } as Parameters<typeof generateEndpoint>[0])).toThrow(
      /unknown option path/,
    );
    expect(() => generateEndpoint({ baseUrl, dangerouslyAllowHttp: "1" } as never)).toThrow(/true or false/);
  });
});
