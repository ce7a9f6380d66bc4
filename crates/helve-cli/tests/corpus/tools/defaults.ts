// call: {}
// => 5 x true
// call: {"n":7}
// => 7 x true
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "Defaults are filled in",
  args: { n: tool.schema.number().default(5), s: tool.schema.string().optional().default("x"), b: tool.schema.boolean().default(true) },
  async execute({ n, s, b }) { return `${n} ${s} ${b}` },
})
