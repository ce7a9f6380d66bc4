// The module "bun": bun's own global, or our replacement on node.
const bun = globalThis.Bun;
export default bun;
export const {
  $, spawn, spawnSync, file, write, which, sleep, sleepSync, randomUUIDv7, CryptoHasher, Glob, env, argv, version, main,
  fileURLToPath, pathToFileURL, nanoseconds, inspect, escapeHTML, stripANSI, deepEquals, readableStreamToText,
  readableStreamToJSON, readableStreamToBytes, readableStreamToArrayBuffer, serve, build, connect, listen, YAML,
} = bun;
