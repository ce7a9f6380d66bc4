// call: {}
// => ba7816bf8f01cfea|true
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "CryptoHasher", args: {},
  async execute() {
    const hash = new Bun.CryptoHasher("sha256").update("abc").digest("hex")
    return [hash.slice(0, 16), /^[0-9a-f-]{36}$/.test(Bun.randomUUIDv7())].join("|")
  },
})
