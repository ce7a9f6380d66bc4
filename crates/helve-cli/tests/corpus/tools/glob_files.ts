// call: {}
// => true|x.ts,y/z.ts
import { tool } from "@opencode-ai/plugin"
import * as fs from "fs"
import * as path from "path"
import os from "os"
export default tool({
  description: "Glob", args: {},
  async execute() {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "glob-"))
    fs.mkdirSync(path.join(folder, "y"))
    for (const name of ["x.ts", "y/z.ts", "n.js"]) fs.writeFileSync(path.join(folder, name), "")
    const found = [...new Bun.Glob("**/*.ts").scanSync(folder)].sort()
    fs.rmSync(folder, { recursive: true })
    return [new Bun.Glob("*.ts").match("a.ts"), found].join("|")
  },
})
