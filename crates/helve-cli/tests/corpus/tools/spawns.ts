// call: {}
// => out|in|0|2|sync|true
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "Bun.spawn", args: {},
  async execute() {
    const child = Bun.spawn(["echo", "out"], { stdout: "pipe" })
    const out = (await new Response(child.stdout).text()).trim()
    const cat = Bun.spawn({ cmd: ["cat"], stdin: "pipe", stdout: "pipe" })
    cat.stdin.write("in"); cat.stdin.end()
    const piped = await cat.stdout.text()
    const code = await child.exited
    const failed = await Bun.spawn(["sh", "-c", "exit 2"]).exited
    const sync = Bun.spawnSync(["echo", "sync"])
    return [out, piped, code, failed, sync.stdout.toString().trim(), sync.success].join("|")
  },
})
