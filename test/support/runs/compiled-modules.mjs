// jest compiles every module again for every test file that imports it: express, a database library, jest's own `expect`. Here each is parsed
// once in a worker, and its later compilations begin from what V8 keeps of the first: a twentieth of the processors' time of a run.
import vm from "node:vm";

/** By the source text. Undefined in it: met once. Most test files are. */
const compiled = new Map();

vm.SourceTextModule = new Proxy(vm.SourceTextModule, {
  construct(Module, [source, options]) {
    const cachedData = compiled.get(source);
    if (cachedData !== undefined) {
      try {
        return new Module(source, { ...options, cachedData });
      } catch (error) {
        // Under a profiler V8 takes none.
        if (error?.code !== "ERR_VM_MODULE_CACHED_DATA_REJECTED") throw error;
      }
    }
    const module = new Module(source, options);
    if (compiled.has(source)) compiled.set(source, module.createCachedData());
    else compiled.set(source, undefined);
    return module;
  },
});

const { compileFunction } = vm;
vm.compileFunction = (source, parameters, options) => {
  const cachedData = compiled.get(source);
  const produceCachedData = cachedData === undefined && compiled.has(source);
  const result = compileFunction(source, parameters, { ...options, cachedData, produceCachedData });
  if (cachedData === undefined) compiled.set(source, result.cachedData);
  return result;
};
