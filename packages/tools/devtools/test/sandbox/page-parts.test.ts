import { beforeAll, describe, expect, test } from "@jest/globals";
import { tamperedWebhookParts, tamperedWebhookTexts } from "../../src/sandbox/delivery/webhook-request.ts";

interface Verdict {
  readonly text: string;
  readonly tone: string;
}
interface Attempt {
  readonly status?: number;
  readonly error?: string;
  readonly spoilt?: string;
}

let page: {
  readonly indented: (text: string) => string;
  readonly attemptVerdict: (attempt: Attempt, index: number, attempts: readonly Attempt[]) => Verdict;
  readonly payoutVerdict: (payout: { asExpected: boolean; isUrlProven: boolean }) => Verdict;
};
beforeAll(async () => {
  // Modules of the browser, without types.
  const parts = ["json", "verdicts"].map(
    (name) => import(new URL(`../../page/sandbox/${name}.js`, import.meta.url).href),
  );
  page = Object.assign({}, ...(await Promise.all(parts)));
});

describe("JSON", () => {
  test.each([
    ["{}", "{}"],
    ['{"a":[]}', '{\n  "a": []\n}'],
    ['{"a":{"b":[1,2]},"c":null}', '{\n  "a": {\n    "b": [\n      1,\n      2\n    ]\n  },\n  "c": null\n}'],
    // Parsed and written again, these would be others.
    [
      '{"value": 10.10, "big":12345678901234567890}',
      '{\n  "value": 10.10,\n  "big": 12345678901234567890\n}',
    ],
    [
      '{"a":1,"a":2,"t":"{\\"x\\": [1,2]}\\u00e4"}',
      '{\n  "a": 1,\n  "a": 2,\n  "t": "{\\"x\\": [1,2]}\\u00e4"\n}',
    ],
    [" [ { } , [ ] ] ", "[\n  {},\n  []\n]"],
    ['"text"', '"text"'],
    ["-1.5e3", "-1.5e3"],
  ])("%s has its lines indented, and nothing else is changed", (text, expected) => {
    expect(page.indented(text)).toBe(expected);
  });

  test.each(["", "no JSON", '{"a":1', '{"a":1} rest', "<p>{}</p>"])(
    "%j is none, and stays as it is",
    (text) => {
      expect(page.indented(text)).toBe(text);
    },
  );
});

describe("a delivery that is sent spoilt", () => {
  const of = (...attempts: readonly Attempt[]): readonly string[] => {
    const index = attempts.findIndex(({ spoilt }) => spoilt !== undefined);
    const { text, tone } = page.attemptVerdict(attempts[index] ?? {}, index, attempts);
    return [tone, text];
  };
  const refused = { status: 401, spoilt: "body" };

  test("is green only where the same was taken unspoilt", () => {
    expect(of({ status: 200 }, refused)).toEqual(["good", "refused, as it should be"]);
    expect(of({ status: 500 }, { status: 202 }, { status: 404, spoilt: "body" })[0]).toBe("good");
    // Sent spoilt before it was sent otherwise.
    expect(of(refused, { status: 200 })).toEqual(["good", "refused, as it should be"]);
  });

  test.each<[string, Attempt[], string]>([
    ["was refused unspoilt too", [{ status: 401 }, refused], "not known: unspoilt it got 401"],
    [
      "got no answer",
      [{ error: "connection-refused" }, refused],
      "not known: unspoilt it got connection-refused",
    ],
    ["was not sent unspoilt", [refused], "not known: unspoilt it was not sent yet"],
    ["was refused of late", [{ status: 200 }, { status: 404 }, refused], "not known: unspoilt it got 404"],
    ["was refused after it", [refused, { status: 404 }, { status: 200 }], "not known: unspoilt it got 404"],
    [
      "failed both times",
      [{ status: 500 }, { status: 500, spoilt: "body" }],
      "not known: unspoilt it got 500",
    ],
  ])("is not known where it %s", (_name, attempts, text) => {
    expect(of(...attempts)).toEqual(["doubt", text]);
  });

  test("is red where it was taken, or answered with another status than the unspoilt one's", () => {
    expect(of({ status: 401 }, { status: 200, spoilt: "body" })).toEqual([
      "bad",
      "taken although it was spoilt",
    ]);
    expect(of({ status: 200 }, { status: 500, spoilt: "body" })).toEqual(["bad", "401 or 404 is expected"]);
  });

  test("has a name in plain words for each part", () => {
    expect(Object.keys(tamperedWebhookTexts)).toEqual([...tamperedWebhookParts]);
  });
});

test("a payout is green only where its URL took an unspoilt one", () => {
  const of = (asExpected: boolean, isUrlProven: boolean): string =>
    page.payoutVerdict({ asExpected, isUrlProven }).tone;
  expect([of(true, true), of(true, false), of(false, true), of(false, false)]).toEqual([
    "good",
    "doubt",
    "bad",
    "bad",
  ]);
});
