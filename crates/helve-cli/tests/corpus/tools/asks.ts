// call: {}
// => allowed
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "ask", args: {},
  async execute(_args, ctx) {
    ctx.metadata({ title: "asking", metadata: { step: 1 } })
    await ctx.ask({ permission: "asks_extra", patterns: ["x"], always: ["*"], metadata: {} })
    return "allowed"
  },
})
