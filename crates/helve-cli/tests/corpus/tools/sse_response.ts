// call: {}
// => a,b|{"n":1}
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "streams", args: {},
  async execute() {
    const lines: string[] = []
    const stream = new Response("a\nb\n").body!.pipeThrough(new TextDecoderStream())
    for await (const chunk of stream as any) lines.push(...chunk.trim().split("\n"))
    return [lines.join(), JSON.stringify(await Response.json({ n: 1 }).json())].join("|")
  },
})
