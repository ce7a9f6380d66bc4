// call: {}
// => mjs
import { tool } from "@opencode-ai/plugin"
export default tool({ description: "d", args: {}, execute: async () => "mjs" })
