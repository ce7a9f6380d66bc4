// call: {"u":1}
// => 1
// call: {"u":"two"}
// => two
import * as z from "zod"
export default { description: "union", args: { u: z.union([z.string(), z.number()]) }, execute: async (args: { u: unknown }) => String(args.u) }
