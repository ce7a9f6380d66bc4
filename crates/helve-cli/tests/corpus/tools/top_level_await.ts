// call: {}
// => ready
import { tool } from "@opencode-ai/plugin"
const value = await Promise.resolve("ready")
export default tool({ description: "d", args: {}, execute: async () => value })
