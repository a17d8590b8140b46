import { z } from "zod";
import { reasonOf, SettingError } from "./setting-error.ts";
import { readTextFile } from "./text-file.ts";

/** A business of the platform, and the account to which it may be paid. */
export interface Business {
  readonly businessId: string;
  /** Upper case, without spaces. */
  readonly iban: string;
}

const businessesExpected = 'the path of a JSON file such as [{ "business_id": "b1", "iban": "DE02..." }]';
const businessSchema = z.object({
  business_id: z.string().min(1),
  iban: z
    .string()
    .transform((iban) => iban.replaceAll(" ", "").toUpperCase())
    .pipe(z.string().regex(/^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$/)),
});

/** Reads the businesses. Throws a SettingError that names the first bad row. */
export function readBusinesses(variable: string, file: string): readonly Business[] {
  const content = readJson(variable, file, businessesExpected);
  if (!Array.isArray(content) || content.length === 0) {
    throw new SettingError(variable, `${businessesExpected}; ${file} holds no list of at least one row`);
  }
  return content.map((row: unknown, index) => {
    const parsed = businessSchema.safeParse(row);
    if (!parsed.success) {
      const field = parsed.error.issues[0]?.path.join(".") ?? "";
      const fault = field === "" ? "is no object" : `has no valid ${field}`;
      throw new SettingError(variable, `${businessesExpected}; row ${index + 1} of ${file} ${fault}`);
    }
    return { businessId: parsed.data.business_id, iban: parsed.data.iban };
  });
}

function readJson(variable: string, file: string, expected: string): unknown {
  let text: string;
  try {
    text = readTextFile(file);
  } catch (error) {
    throw new SettingError(variable, `${expected} (${reasonOf(error)})`, file);
  }
  try {
    const content: unknown = JSON.parse(text);
    return content;
  } catch {
    // The parser's message quotes the content, which may be a key.
    throw new SettingError(variable, `${expected}; ${file} is no JSON`);
  }
}
