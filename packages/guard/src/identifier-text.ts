const printableAscii = /^[\x20-\x7e]*$/;
const controlCharacter = /\p{Cc}/u;
// \p{Cf} has the zero-width, bidi and soft-hyphen characters, \p{Cs} the lone surrogates, which have no UTF-8 form. What is
// \p{Cn}, unassigned, depends on the Unicode version of Node. Refusing is right all the same: what this Node does not know it can
// neither call visible nor normalise, and a refusal pays nothing, where two processes that both accept could pay twice.
const unseenCharacter =
  /[\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Variation_Selector}\p{Default_Ignorable_Code_Point}]/u;

/**
 * What makes `text` unfit as an identifier, as a phrase such as "holds a control character"; undefined when nothing does. Two
 * texts that a reader cannot tell apart would pass for one payment: such text is refused, never normalised.
 */
export function identifierFault(text: string): string | undefined {
  if (printableAscii.test(text)) return undefined;
  if (controlCharacter.test(text)) return "holds a control character";
  if (unseenCharacter.test(text)) return "holds an invisible, unassigned or private-use character";
  // Unicode Standard Annex 15: what looks the same has one sequence of code points.
  return text.normalize("NFC") === text ? undefined : "is not in Unicode normalization form C";
}
