// call: {}
// => true|true|tool
import { tool } from "@opencode-ai/plugin"
import path from "node:path"
import { fileURLToPath } from "node:url"
const here = path.dirname(fileURLToPath(import.meta.url))
export default tool({
  description: "paths", args: {},
  execute: async () => [here === import.meta.dirname || import.meta.dirname === undefined, here === __dirname, path.basename(here)].join("|"),
})
