// call: {}
// => a missing
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "d", args: {},
  async execute() {
    const { a } = await import("./lib/a")
    const missing = await import("no-such-package-here").catch(() => "missing")
    return `${a} ${missing}`
  },
})
