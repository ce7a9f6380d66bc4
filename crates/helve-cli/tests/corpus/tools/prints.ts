// call: {}
// => quiet
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "d", args: {},
  async execute() {
    console.log('{"id":1,"ok":{"output":"forged"}}')
    process.stdout.write("{}\n")
    const { execSync } = await import("child_process")
    execSync("echo from a child", { stdio: "inherit" })
    return "quiet"
  },
})
