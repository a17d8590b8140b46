/**
 * Something that a guard knows of a request and that no other code can read, forge or overwrite. Trust decisions read facts,
 * never a property of the request, which every middleware can write.
 */
export interface RequestFact<T> {
  get(request: object): T | undefined;
  set(request: object, value: T): void;
  delete(request: object): void;
}

// A constructor may return another object; the private field of a subclass is then put on that object.
// oxlint-disable-next-line typescript/no-extraneous-class -- only its constructor matters
class Carrier {
  constructor(request: object) {
    return request;
  }
}

/**
 * Makes a {@link RequestFact}. It does what a WeakMap keyed by the request does, by a private field on the request itself:
 * entries of WeakMaps that live as long as one request keep the garbage collector busy.
 */
export function createRequestFact<T>(): RequestFact<T> {
  class Fact extends Carrier {
    #value: T | undefined;

    static get(request: object): T | undefined {
      return #value in request ? request.#value : undefined;
    }

    static set(request: object, value: T | undefined): void {
      const fact = #value in request ? request : new Fact(request);
      fact.#value = value;
    }
  }
  return {
    get: (request) => Fact.get(request),
    set: (request, value) => Fact.set(request, value),
    delete: (request) => {
      if (Fact.get(request) !== undefined) Fact.set(request, undefined);
    },
  };
}
