// The module "bun:ffi": bun's own module. On node it can be imported, but loads no libraries.
function unavailable(name) {
  return () => {
    throw new Error(`${name} of bun:ffi is not available on node; install bun to use it`);
  };
}

/** Returns the name of a type, which nothing on node interprets. */
const types = new Proxy({}, { get: (_target, name) => name });

const NAMES = ["dlopen", "linkSymbols", "cc", "ptr", "toArrayBuffer", "toBuffer", "viewSource", "CFunction", "CString", "JSCallback"];
const onNode = () => ({
  ...Object.fromEntries(NAMES.map((name) => [name, unavailable(name)])),
  FFIType: types,
  read: new Proxy({}, { get: (_target, name) => unavailable(`read.${String(name)}`) }),
  suffix: { darwin: "dylib", win32: "dll" }[process.platform] ?? "so",
});

const module = process.versions.bun ? await import("bun:ffi") : onNode();
export default module;
export const { dlopen, linkSymbols, cc, ptr, toArrayBuffer, toBuffer, viewSource, CFunction, CString, JSCallback, FFIType, read, suffix } = module;
