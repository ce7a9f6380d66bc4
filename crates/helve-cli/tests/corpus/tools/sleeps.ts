// call: {}
// => true
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "sleep", args: {},
  async execute() {
    const start = performance.now()
    await Bun.sleep(2); Bun.sleepSync(2)
    return String(performance.now() - start >= 3)
  },
})
