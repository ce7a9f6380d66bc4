// call: {}
// => 1 two text\n two
import { tool } from "@opencode-ai/plugin"
import json, { name } from "./lib/data.json"
import text from "./lib/text.md"
import again from "./lib/data.json" with { type: "json" }
export default tool({ description: "d", args: {}, execute: async () => `${json.n} ${name} ${text} ${again.name}` })
