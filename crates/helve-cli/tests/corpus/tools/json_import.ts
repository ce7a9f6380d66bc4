// call: {}
// => 3 words|# Title
import { tool } from "@opencode-ai/plugin"
import words from "./lib/words.json" with { type: "json" }
import title from "./lib/title.md"
export default tool({
  description: "data", args: {},
  execute: async () => `${words.length} words|${title.trim()}`,
})
