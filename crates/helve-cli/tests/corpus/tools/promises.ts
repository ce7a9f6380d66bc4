// call: {"path": "/"}
// => true true true
// call: {"path": "/no such file"}
// => false false false
import promises, { exists, stat } from "fs/promises"
import * as all from "node:fs/promises"
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "exists of fs/promises, which only bun has", args: { path: tool.schema.string() },
  async execute({ path }) {
    const found = await stat(path).then(() => true, () => false)
    return `${found} ${await exists(path)} ${(await promises.exists(path)) && (await all.exists(path))}`
  },
})
