// call: {"s":" a "}
// => [a]
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "transform",
  args: { s: tool.schema.string().transform((s) => s.trim()) },
  async execute(args) { return `[${args.s}]` },
})
