// call: {"how":"error"}
// => ! TypeError: wrong\n(at .opencode/tool/throws.ts:11)
// call: {"how":"string"}
// => ! just text
// call: {"how":"exit"}
// => ! process.exit(3) was called; a tool must return or throw instead\n(at .opencode/tool/throws.ts:13)
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "d", args: { how: tool.schema.string() },
  async execute({ how }) {
    if (how === "error") throw new TypeError("wrong")
    if (how === "string") throw "just text"
    process.exit(3)
  },
})
