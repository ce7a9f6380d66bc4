// call: {"id":"7"}
// => item 7
import { tool } from "@opencode-ai/plugin"
class Repository {
  #items = new Map<string, string>()
  static #shared?: Repository
  constructor(private readonly prefix: string) {}
  static get shared() { return (this.#shared ??= new Repository("item")) }
  find = (id: string) => this.#items.get(id) ?? `${this.prefix} ${id}`
}
export default tool({ description: "d", args: { id: tool.schema.string() }, execute: async ({ id }) => Repository.shared.find(id) })
