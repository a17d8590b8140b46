import { expect, test } from "@jest/globals";
import { MessageSignatureError } from "@countersign/http-message-signatures";

test("is an Error with a name and a code", () => {
  const error = new MessageSignatureError("key-unknown", "no key is known under this keyid");
  expect(error).toBeInstanceOf(Error);
  expect(error).toMatchObject({ name: "MessageSignatureError", code: "key-unknown" });
  expect(String(error)).toBe("MessageSignatureError: no key is known under this keyid");
});
