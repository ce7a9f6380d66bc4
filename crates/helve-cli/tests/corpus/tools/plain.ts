// call: {"name":"ann"}
// => hello ann
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "Greets",
  args: { name: tool.schema.string().describe("Who") },
  async execute(args) { return `hello ${args.name}` },
})
