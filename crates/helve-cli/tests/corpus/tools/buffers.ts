// call: {"text":"häl"}
// => 4|aMOkbA==|68c3a46c
import { createHash } from "crypto"
import { Buffer } from "buffer"
import { tool } from "@opencode-ai/plugin/tool"
export default tool({
  description: "buffers", args: { text: tool.schema.string().min(1) },
  async execute({ text }) {
    createHash("sha256").update(text)
    const bytes = Buffer.from(text)
    return [bytes.length, bytes.toString("base64"), bytes.toString("hex")].join("|")
  },
})
