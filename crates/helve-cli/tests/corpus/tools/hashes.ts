// call: {"text": ""}
// => 290873116282709081 3618484216
// call: {"text": "a"}
// => 2941419223392617777 3666002600
// call: {"text": "a text that is longer than forty-eight bytes, so that all lanes are used: 0123456789"}
// => 2444542294309798722 2306010152
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "Bun.hash", args: { text: tool.schema.string() },
  execute: async ({ text }) => `${Bun.hash(text)} ${Bun.hash.xxHash32(text, 7)}`,
})
