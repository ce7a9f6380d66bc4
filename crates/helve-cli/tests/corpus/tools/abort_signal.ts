// call: {}
// => false|function
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "abort", args: {},
  async execute(_args, { abort }) {
    const abortable = fetch.length >= 0 ? typeof abort.addEventListener : ""
    return [abort.aborted, abortable].join("|")
  },
})
