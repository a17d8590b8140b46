// The page of all codes: what is written of each in codes/, with what the packages say when it is made to happen.
import { groups } from "../codes/index.mjs";

const opening = `---
outline: [2, 2]
pageClass: codes
---

# Codes

Each refusal has a code. It stands in the error's \`code\`, in the events of \`countersign:guard\`, and, where nobody listens, on a line on
stderr; the error's member \`docs\` is the address of its place on this page. Answers never have the
address, and those with 401 not even the code: they all look alike. The examples are what the packages said when this page was built.

A code that is not here is one of your own app's guards, or of a library for the other side: [service-client](./packages/service-client.md#codes),
[sandbox](./packages/sandbox.md#codes).
`;

/** `happen` makes a code happen, and gives its words. */
export async function codesPage({ happen = (_code, { provoke }) => provoke() } = {}) {
  const parts = [opening];
  for (const { title, codes } of groups) {
    parts.push(`## ${title}\n`);
    // One at a time: a line on stderr is the process's.
    for (const [code, entry] of Object.entries(codes)) parts.push(await section(code, entry, happen));
  }
  return parts.join("\n");
}

async function section(code, entry, happen) {
  const { status, notice, by, cause, remedy, example, provoke } = entry;
  const kind = notice ? "notice" : status === undefined ? "no answer of its own" : `status ${status}`;
  const names = by.map((name) => (name === "all" ? "all" : `\`${name}\``)).join(", ");
  const head = `### ${code}\n\n*${kind} · ${names}*\n\n**Cause.** ${cause}\n\n**Remedy.** ${remedy}\n`;
  if (provoke === undefined) return head;
  const happened = await happen(code, entry);
  if (happened.code !== code) throw new Error(`${code}: what happened is ${happened.code}`);
  const language = happened.text.startsWith("{") ? "json" : "text";
  return `${head}\n**Example.** ${example}\n\n\`\`\`${language}\n${happened.text}\n\`\`\`\n`;
}
