import type { OptionRule } from "@countersign/core/internal";

/** The tables of options on pages, by the name that a page writes. */
export const optionTables: Readonly<
  Record<
    string,
    { readonly rules: Readonly<Record<string, OptionRule<unknown>>>; readonly types: readonly string[] }
  >
>;
