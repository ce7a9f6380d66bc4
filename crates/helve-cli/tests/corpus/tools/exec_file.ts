// call: {"word":"it's"}
// => it's|2|caught 3
import { tool } from "@opencode-ai/plugin"
import { execFile, execSync, spawn } from "node:child_process"
import { promisify } from "node:util"
const run = promisify(execFile)
export default tool({
  description: "child_process", args: { word: tool.schema.string() },
  async execute({ word }) {
    const { stdout } = await run("echo", [word])
    const lines = execSync("printf 'a\\nb\\n'", { encoding: "utf8" }).trim().split("\n").length
    const code = await new Promise((done) => spawn("sh", ["-c", "exit 3"]).on("close", done))
    return [stdout.trim(), lines, `caught ${code}`].join("|")
  },
})
