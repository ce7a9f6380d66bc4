// call: {}
// => true true string string build false function function
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "context", args: {},
  async execute(_args, ctx) {
    return [ctx.directory === ctx.worktree, ctx.directory === process.cwd(), typeof ctx.sessionID, typeof ctx.callID, ctx.agent, ctx.abort.aborted, typeof ctx.metadata, typeof ctx.ask].join(" ")
  },
})
