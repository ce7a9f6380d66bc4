// call: {}
// => location.ts tool location.ts true
import { tool } from "@opencode-ai/plugin"
import path from "node:path"
import { fileURLToPath } from "url"
const __filename = fileURLToPath(import.meta.url)
export default tool({
  description: "d", args: {},
  execute: async () => [path.basename(__filename), path.basename(import.meta.dirname ?? ""), path.basename(import.meta.path), import.meta.dir === import.meta.dirname].join(" "),
})
