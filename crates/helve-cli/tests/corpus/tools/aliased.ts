// call: {}
// => a
import { tool } from "@opencode-ai/plugin"
import { a } from "~lib/a"
export default tool({ description: "tsconfig paths", args: {}, execute: async () => a })
