// The module "bun": bun's own global, or our replacement on node. It exports every name of bun, so that a file can be
// loaded that uses only some of what it imports.
import { unavailable } from "./shim.mjs";

const bun = globalThis.Bun;
/** On node, names that the replacement lacks are functions that say so. */
const names = process.versions.bun ? bun : new Proxy(bun, { get: (own, name) => (name in own ? own[name] : unavailable(name)) });
export default bun;
export const {
  $, Archive, ArrayBufferSink, CSRF, Cookie, CookieMap, CryptoHasher, FFI, FileSystemRouter, Glob, Image, JSON5,
  JSONC, JSONL, MD4, MD5, RedisClient, S3Client, SHA1, SHA224, SHA256, SHA384, SHA512, SHA512_256, SQL, TOML,
  Terminal, Transpiler, XML, YAML, allocUnsafe, argv, build, color, concatArrayBuffers, connect, cron, deepEquals,
  deepMatch, deflateSync, dns, embeddedFiles, enableANSIColors, env, escapeHTML, fetch, file, fileURLToPath, gc,
  gunzipSync, gzipSync, hash, indexOfLine, inflateSync, inspect, isMainThread, listen, main, markdown, mmap,
  nanoseconds, openInEditor, password, pathToFileURL, peek, plugin, postgres, randomUUIDv5, randomUUIDv7,
  readableStreamToArray, readableStreamToArrayBuffer, readableStreamToBlob, readableStreamToBytes,
  readableStreamToFormData, readableStreamToJSON, readableStreamToText, redis, resolve, resolveSync, revision, s3,
  secrets, semver, serve, sha, shrink, sleep, sleepSync, sliceAnsi, spawn, spawnSync, stderr, stdin, stdout,
  stringWidth, stripANSI, udpSocket, unsafe, version, which, wrapAnsi, write, zstdCompress, zstdCompressSync,
  zstdDecompress, zstdDecompressSync,
} = names;
/** Loaded when it is used, because that takes a long time. */
export const sql = new Proxy(function sql() {}, {
  apply: (_target, _self, values) => names.sql(...values),
  get: (_target, name) => names.sql[name],
});
