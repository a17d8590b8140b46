import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "@jest/globals";
import { capture, killAll } from "../../../examples/platform/test/platform-process.ts";
import { mysqlUrl, postgresUrl } from "../../support/servers/engines.ts";
import { judge } from "./judge.mjs";

const program = fileURLToPath(new URL("work-soak.mjs", import.meta.url));
const [events, outcomes] = [3_000, 300];
const engines = [
  "sqlite",
  ...(postgresUrl === undefined ? [] : ["postgres"]),
  ...(mysqlUrl === undefined ? [] : ["mariadb"]),
];

afterEach(killAll);

describe("rows 33 and 34: work-soak.mjs", () => {
  test.each(engines)(
    "%s: four processes lose nothing, repeat nothing and keep the order, under kills and stops",
    async (engine) => {
      const args = [program, "--events", String(events), "--outcomes", String(outcomes), "--engines", engine];
      const env = { DATABASE_URL: postgresUrl ?? "", MYSQL_URL: mysqlUrl ?? "" };
      const soak = capture(process.execPath, args, { env });
      const code = await soak.ended;
      expect({ code, report: soak.stdout(), errors: soak.stderr() }).toEqual({
        code: 0,
        // A soak in which nothing happened proves nothing.
        report: expect.stringMatching(
          new RegExp(
            `: ${events} events .*, ${outcomes} payouts settled, .* [1-9]\\d* kills, [1-9]\\d* stops`,
          ),
        ),
        errors: expect.any(String),
      });
    },
    240_000,
  );
});

const sound = {
  events: 3,
  applied: [
    { entity: "a", number: 1 },
    { entity: "b", number: 1 },
    { entity: "a", number: 2 },
  ],
  settled: ["k"],
  rolledBack: ["undone"],
  received: new Map([["k", 2]]),
  dead: 0,
};

describe("judge()", () => {
  test("finds nothing where all is as it has to be", () => {
    expect(judge(sound)).toEqual([]);
  });

  test.each<[string, Partial<typeof sound>, RegExp]>([
    ["an event that is lost", { applied: sound.applied.slice(0, 2) }, /2 events were applied, of 3/],
    [
      "an event that is applied twice",
      { applied: [...sound.applied, { entity: "b", number: 1 }] },
      /behind 1/,
    ],
    [
      "another order",
      { applied: [sound.applied[2]!, sound.applied[1]!, sound.applied[0]!] },
      /event 2 was applied behind 0/,
    ],
    ["an outcome that is lost", { received: new Map() }, /outcome of k was not received/],
    [
      "an outcome of what was rolled back",
      {
        received: new Map([
          ["k", 1],
          ["undone", 1],
        ]),
      },
      /not settled/,
    ],
    ["what was rolled back and stays", { settled: ["k", "undone"] }, /is settled, and was rolled back/],
    ["a dead letter", { dead: 1 }, /1 tasks are dead/],
  ])("finds %s", (_fault, changed, message) => {
    expect(judge({ ...sound, ...changed }).join("\n")).toMatch(message);
  });
});
