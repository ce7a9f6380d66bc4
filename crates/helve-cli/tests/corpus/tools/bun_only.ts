// call: {}
// => function|true
import { tool } from "@opencode-ai/plugin"
import { $, semver, sql, Terminal } from "bun"
import { dlopen, FFIType } from "bun:ffi"
let library = "loaded"
try {
  dlopen("/nothing.so", { f: { args: [FFIType.i32], returns: FFIType.void } })
} catch {
  library = "failed"
}
export default tool({
  description: "imports of bun that exist nowhere else", args: {},
  execute: async () => `${typeof $}|${Boolean(semver && sql && Terminal) && library === "failed"}`,
})
