// jest compiles every module again for every test file that imports it: express, a database library, jest's own `expect`. In a worker that
// keeps compilations each is parsed twice, and the later ones begin from what V8 keeps of the second: a twentieth of a run's processor time.
import vm from "node:vm";

/** By the source text; undefined of what was met once, as most test files are. */
const compilations = new Map();

export function keepCompilations() {
  vm.SourceTextModule = new Proxy(vm.SourceTextModule, { construct: compileModule });
  const { compileFunction } = vm;
  vm.compileFunction = (source, parameters, options) => {
    if (keepsNothing(source)) return compileFunction(source, parameters, options);
    const cachedData = compilations.get(source);
    const produceCachedData = cachedData === undefined && compilations.has(source);
    const compiled = compileFunction(source, parameters, { ...options, cachedData, produceCachedData });
    if (cachedData === undefined) compilations.set(source, compiled.cachedData);
    return compiled;
  };
}

// V8 forgets with a compilation that was kept whom to ask for what the module imports when it runs.
const keepsNothing = (source) => /\bimport\s*\(/.test(source);

function compileModule(SourceTextModule, [source, options]) {
  if (keepsNothing(source)) return new SourceTextModule(source, options);
  const cachedData = compilations.get(source);
  if (cachedData !== undefined) {
    try {
      return new SourceTextModule(source, { ...options, cachedData });
    } catch (error) {
      // Under a profiler V8 takes none.
      if (error?.code !== "ERR_VM_MODULE_CACHED_DATA_REJECTED") throw error;
    }
  }
  const module = new SourceTextModule(source, options);
  compilations.set(source, compilations.has(source) ? module.createCachedData() : undefined);
  return module;
}
