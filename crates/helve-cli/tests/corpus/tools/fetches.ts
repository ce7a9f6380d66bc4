// call: {}
// => 200 pong
import { tool } from "@opencode-ai/plugin"
import http from "node:http"
export default tool({
  description: "fetch from loopback", args: {},
  async execute(_args, ctx) {
    const server = http.createServer((_request, response) => response.end("pong"))
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
    const { port } = server.address() as any
    const response = await fetch(`http://127.0.0.1:${port}/`, { signal: ctx.abort })
    const text = await response.text()
    server.close()
    return `${response.status} ${text}`
  },
})
