// call: {"even":2}
// => 2
// call: {"even":3}
// => ! The refined tool was called with invalid arguments:\n- even: must be even\nPlease rewrite the input so it satisfies the expected schema.
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "refine and regex",
  args: { even: tool.schema.number().refine((n) => n % 2 === 0, "must be even") },
  async execute(args) { return String(args.even) },
})
