// call: {"r":{"a":1},"l":"x","n":null,"t":["a",1]}
// => {"r":{"a":1},"l":"x","n":null,"t":["a",1]}
import { tool } from "@opencode-ai/plugin"
const z = tool.schema
export default tool({
  description: "kinds",
  args: { r: z.record(z.string(), z.number()), l: z.literal("x"), n: z.string().nullable(), t: z.tuple([z.string(), z.number()]), any: z.any().optional(), u: z.unknown().optional(), d: z.object({ deep: z.array(z.object({ x: z.url() })) }).passthrough().optional() },
  async execute(args) { return JSON.stringify(args) },
})
