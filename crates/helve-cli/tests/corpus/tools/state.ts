// call: {}
// => 1
// call: {}
// => 2
import { tool } from "@opencode-ai/plugin"
let calls = 0
export default tool({ description: "state stays while the process lives", args: {}, execute: async () => String(++calls) })
