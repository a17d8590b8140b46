// V8 before 13, which is Node 20 and 22, copies the layout of an object for every property that it gets after its prototype
// was exchanged, as Express does with each request and response: about 2 us and 1.5 kB a property. Not so a dictionary.
const copiesLayouts = Number.parseInt(process.versions.v8, 10) < 13;

/**
 * Tells V8 to keep the properties of `subject` in a dictionary, because several are about to be added. A matter of speed alone:
 * the own property `present` is taken out and put back, behind the others; without one nothing happens.
 */
export function expectManyProperties<Name extends string>(
  subject: { [Property in Name]?: unknown },
  present: Name,
): void {
  if (!copiesLayouts) return;
  const descriptor = Object.getOwnPropertyDescriptor(subject, present);
  // An accessor or a constant is the app's own doing.
  if (descriptor?.writable !== true || descriptor.configurable !== true) return;
  Reflect.deleteProperty(subject, present);
  Object.defineProperty(subject, present, descriptor);
}
