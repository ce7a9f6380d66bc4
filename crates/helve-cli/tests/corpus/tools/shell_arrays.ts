// call: {}
// => a b|x y|v
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "$ with arrays and env", args: {},
  async execute() {
    const list = ["a", "b"]
    const one = (await Bun.$`echo ${list}`.text()).trim()
    const raw = (await Bun.$`echo ${{ raw: "x   y" }}`.text()).trim()
    const env = (await Bun.$`echo $GIVEN`.env({ ...process.env, GIVEN: "v" }).text()).trim()
    return [one, raw, env].join("|")
  },
})
