// call: {}
// => 1,2,3 done
import { tool } from "@opencode-ai/plugin"
async function* numbers() { for (const n of [1, 2, 3]) yield n }
export default tool({
  description: "d", args: {},
  async execute() { const all: number[] = []; for await (const n of numbers()) all.push(n); label: for (;;) { break label } return `${all} done` },
})
