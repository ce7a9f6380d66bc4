// call: {"mode":"fast","list":["a","b"]}
// => fast a+b
import { z } from "zod"
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "zod itself",
  args: { mode: z.enum(["fast", "slow"]), list: z.array(z.string()).min(1), more: z.object({ a: z.number().int().min(0) }).optional() },
  async execute(args) { return `${args.mode} ${args.list.join("+")}` },
})
