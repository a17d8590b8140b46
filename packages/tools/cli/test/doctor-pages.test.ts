import { readFileSync } from "node:fs";
import { describe, expect, test } from "@jest/globals";
import { docsOfFinding, findingKinds, type FindingId } from "../src/doctor/findings.ts";

const page = readFileSync(new URL("../../../../docs/doctor.md", import.meta.url), "utf8");
const sections = new Map(
  page
    .split(/^### /m)
    .slice(1)
    .map((section) => {
      const [id = "", ...lines] = section.split("\n");
      return [id, lines.join("\n").split(/^## /m)[0] ?? ""];
    }),
);

describe("docs/doctor.md", () => {
  test("has a section for each finding, and for nothing else", () => {
    expect(new Set(sections.keys())).toEqual(new Set(Object.keys(findingKinds)));
  });

  test.each(Object.entries(findingKinds))(
    "tells the severity of %s and what to do, as the command does",
    (id, kind) => {
      const section = sections.get(id) ?? "";
      expect(section.trim().toLowerCase().startsWith(`${kind.severity}. `)).toBe(true);
      expect(section.replaceAll("\n", " ")).toContain(`To do: ${kind.remedy}`);
    },
  );

  test.each(Object.keys(findingKinds) as FindingId[])("is where the page of %s leads", (id) => {
    const { homepage } = JSON.parse(
      readFileSync(new URL("../../../../package.json", import.meta.url), "utf8"),
    ) as {
      homepage: string;
    };
    expect(docsOfFinding(id)).toBe(`${homepage}guide/doctor.html#${id}`);
  });
});
