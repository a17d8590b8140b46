import { GuardError } from "@countersign/core";
import { checkedRoute, type RefusalOptions } from "@countersign/fetch";
import { expect, test } from "@jest/globals";

function refusedBy(options: RefusalOptions): Promise<Response> {
  const route = checkedRoute(
    { name: "exampleCheck", ...options },
    () => {
      throw new GuardError({ status: 401, code: "signature-missing", message: "no Signature field" });
    },
    () => new Response("never"),
  );
  return route(new Request("http://localhost/"));
}

test("a route tells the id of its verdict by option alone", async () => {
  const errors: unknown[] = [];
  const onReject = (error: unknown): void => void errors.push(error);
  const plain = await refusedBy({ onReject });
  expect(await plain.text()).toBe('{"type":"about:blank","title":"Unauthorized","status":401}');
  const telling = await refusedBy({ onReject, verdictId: true });
  const id = (errors[1] as GuardError).verdict?.id;
  expect(await telling.json()).toEqual({
    type: "about:blank",
    title: "Unauthorized",
    status: 401,
    instance: `urn:uuid:${id}`,
  });
});
