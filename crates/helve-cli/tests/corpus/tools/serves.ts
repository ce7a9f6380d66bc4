// call: {}
// => 200 POST /echo?a=1 body x=y|201 c=1,d=2|7|404|500 broken|taken EADDRINUSE|true|closed
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "Bun.serve", args: {},
  async execute() {
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      routes: {
        "/items/:id": (request) => new Response(request.params.id),
        "/fixed": { PUT: new Response("fixed") },
      },
      async fetch(request, server) {
        const url = new URL(request.url)
        if (url.pathname === "/fails") throw new Error("broken")
        if (url.pathname === "/cookies") {
          const headers = new Headers([["set-cookie", "c=1"], ["set-cookie", "d=2"]])
          return new Response(null, { status: 201, headers })
        }
        if (url.pathname !== "/echo") return new Response("nothing", { status: 404 })
        if (String(server.port) !== url.port) throw new Error("another port")
        return new Response(`${request.method} ${url.pathname}${url.search} ${await request.text()} ${request.headers.get("x")}`)
      },
      error: (error) => new Response(error.message, { status: 500 }),
    })
    const at = (path: string, init?: RequestInit) => fetch(new URL(path, server.url), init)
    const echoed = await at("/echo?a=1", { method: "POST", body: "body", headers: { x: "x=y" } })
    const cookies = await at("/cookies")
    const fails = await at("/fails")
    const seen = [
      `${echoed.status} ${await echoed.text()}`,
      `${cookies.status} ${cookies.headers.getSetCookie()}`,
      await (await at("/items/7")).text(),
      (await at("/none")).status,
      `${fails.status} ${await fails.text()}`,
    ]
    try {
      Bun.serve({ hostname: "127.0.0.1", port: server.port, fetch: () => new Response() })
    } catch (error) {
      seen.push(`taken ${error.code}`)
    }
    seen.push((await at("/fixed", { method: "PUT" })).ok)
    await server.stop(true)
    seen.push(await at("/echo").then(() => "open", () => "closed"))
    return seen.join("|")
  },
})
