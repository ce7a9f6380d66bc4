// call: {}
// => true 5 hello false {"a":1} 2
import { tool } from "@opencode-ai/plugin"
import path from "path"
import os from "os"
import { mkdtemp } from "fs/promises"
export default tool({
  description: "Bun.file and Bun.write", args: {},
  async execute() {
    const folder = await mkdtemp(path.join(os.tmpdir(), "files-"))
    const name = path.join(folder, "sub", "a.txt")
    const written = await Bun.write(name, "hello")
    const file = Bun.file(name)
    const exists = await file.exists()
    const none = await Bun.file(path.join(folder, "none")).exists()
    await Bun.write(path.join(folder, "b.json"), JSON.stringify({ a: 1 }))
    const json = await Bun.file(path.join(folder, "b.json")).json()
    const found = [...new Bun.Glob("**/*.{txt,json}").scanSync(folder)].length
    return `${exists} ${written} ${await file.text()} ${none} ${JSON.stringify(json)} ${found}`
  },
})
