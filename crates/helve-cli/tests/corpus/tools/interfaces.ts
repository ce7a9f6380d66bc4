// call: {"kind":"b"}
// => B is 2
import { tool, type ToolDefinition } from "@opencode-ai/plugin"
import { Shape } from "./lib/shapes"
import { sizes } from "./lib/shapes.js"
const definition: ToolDefinition = tool({
  description: "interfaces without `type`",
  args: { kind: tool.schema.enum(["a", "b"]).default("a") },
  async execute(args) {
    const shape: Shape = { name: args.kind.toUpperCase(), size: sizes[args.kind as keyof typeof sizes]! }
    return `${shape.name} is ${shape.size satisfies number}`
  },
})
export default definition
