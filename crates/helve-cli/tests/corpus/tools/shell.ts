// call: {"word":"a b; echo no"}
// => a b; echo no|2|true|3|{"j":1}
import { tool } from "@opencode-ai/plugin"
import { $ } from "bun"
export default tool({
  description: "$", args: { word: tool.schema.string() },
  async execute({ word }, ctx) {
    const said = (await $`echo ${word}`.text()).trim()
    const lines = (await $`printf 'x\ny\n' | wc -l`.quiet().text()).trim()
    const here = (await Bun.$`pwd`.cwd(ctx.directory).text()).trim() === ctx.directory
    const code = (await $`exit 3`.nothrow().quiet()).exitCode
    const json = await $`echo ${JSON.stringify({ j: 1 })}`.json()
    return [said, lines, here, code, JSON.stringify(json)].join("|")
  },
})
