// call: {"kind":"number"}
// => 42
// call: {"kind":"nothing"}
// => 
// call: {"kind":"list"}
// => [\n  1\n]
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "d", args: { kind: tool.schema.string() },
  async execute({ kind }): Promise<any> { return kind === "number" ? 42 : kind === "list" ? [1] : undefined },
})
