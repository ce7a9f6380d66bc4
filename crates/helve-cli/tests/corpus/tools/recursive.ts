// call: {"tree":{"v":1,"kids":[{"v":2,"kids":[]}]}}
// => 3
import { tool } from "@opencode-ai/plugin"
const z = tool.schema
type Node = { v: number; kids: Node[] }
const Node: any = z.object({ v: z.number(), get kids() { return z.array(Node) } })
const sum = (n: Node): number => n.v + n.kids.reduce((a, k) => a + sum(k), 0)
export default tool({ description: "recursive", args: { tree: Node }, execute: async (args: any) => String(sum(args.tree)) })
