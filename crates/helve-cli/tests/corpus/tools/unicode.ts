// call: {"text":"grüße 🎉"}
// => 🎉 ESÜRG
import { tool } from "@opencode-ai/plugin"
export default tool({ description: "Größe 🎉", args: { text: tool.schema.string() }, execute: async ({ text }) => [...text.normalize("NFC").replace("ß", "s").toUpperCase()].reverse().join("").replace("  ", " ") })
