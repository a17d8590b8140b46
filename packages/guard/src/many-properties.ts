// V8 before 13, which is Node 20 and 22, copies the layout of an object for every property that it gets after its prototype
// was exchanged, as Express does with each request and response: about 2 us and 1.5 kB a property. Not so a dictionary.
const copiesLayouts = Number.parseInt(process.versions.v8, 10) < 13;
const passing = Symbol("countersign.passing");

/** Tells V8 to keep the properties of `subject` in a dictionary, because several are about to be added. A matter of speed alone. */
export function expectManyProperties(subject: object): void {
  if (!copiesLayouts) return;
  Reflect.set(subject, passing, true);
  Reflect.deleteProperty(subject, passing);
}
