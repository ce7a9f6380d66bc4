// call: {}
// => subpath
import { tool } from "@opencode-ai/plugin/tool"
export default tool({ description: "d", args: {}, execute: async () => "subpath" })
