// call: {"list":[{"id":1,"tags":["x"]},{"id":2}]}
// => 1:x;2:none
// call: {"list":[]}
// => ! Invalid arguments for optional_chain:\n- list: expected a length of at least 1, found 0\nCorrect the arguments and call again.
import { tool } from "@opencode-ai/plugin"
const z = tool.schema
export default tool({
  description: "nested", args: { list: z.array(z.object({ id: z.number().int().positive(), tags: z.array(z.string()).optional() })).min(1) },
  execute: async ({ list }) => list.map((it) => `${it.id}:${it.tags?.[0] ?? "none"}`).join(";"),
})
