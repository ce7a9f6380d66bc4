// call: {}
// => 3 err
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "$ throws", args: {},
  async execute() {
    try { await Bun.$`sh -c 'echo err >&2; exit 3'`.quiet() } catch (error: any) { return `${error.exitCode} ${error.stderr.toString().trim()}` }
    return "no error"
  },
})
