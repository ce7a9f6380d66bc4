// call: {}
// => open|data pong|close|refused
import { tool } from "@opencode-ai/plugin"
import { connect } from "bun"
import net from "node:net"
export default tool({
  description: "Bun.connect", args: {},
  async execute() {
    const server = net.createServer((peer) => peer.on("data", () => peer.end("pong")))
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
    const { port } = server.address() as net.AddressInfo
    const seen: string[] = []
    await new Promise<void>((done) => {
      void connect({
        hostname: "127.0.0.1",
        port,
        socket: {
          open: (socket) => (seen.push("open"), void socket.write("ping")),
          data: (_socket, data) => void seen.push(`data ${Buffer.from(data)}`),
          close: () => (seen.push("close"), done()),
        },
      })
    })
    await new Promise((done) => server.close(done))
    const socket = { data() {}, open() {}, close() {}, error() {}, connectError() {} }
    await connect({ hostname: "127.0.0.1", port, socket }).catch(() => seen.push("refused"))
    return seen.join("|")
  },
})
