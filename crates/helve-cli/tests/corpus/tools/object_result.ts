// call: {}
// => text
import { tool } from "@opencode-ai/plugin"
export default tool({ description: "d", args: {}, execute: async () => ({ title: "Title", output: "text", metadata: { a: 1 } }) })
