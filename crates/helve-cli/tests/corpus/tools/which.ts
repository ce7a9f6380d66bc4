// call: {}
// => true true 36 64
import { tool } from "@opencode-ai/plugin"
import { which, sleep, randomUUIDv7, CryptoHasher } from "bun"
export default tool({
  description: "small parts of Bun", args: {},
  async execute() {
    await sleep(1)
    Bun.sleepSync(1)
    return [which("sh")?.endsWith("/sh"), Bun.which("no-such-program") === null, randomUUIDv7().length, new CryptoHasher("sha256").update("a").digest("hex").length].join(" ")
  },
})
