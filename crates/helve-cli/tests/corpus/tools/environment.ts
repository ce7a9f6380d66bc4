// call: {}
// => string undefined
import { tool } from "@opencode-ai/plugin"
export default tool({ description: "d", args: {}, execute: async () => `${typeof process.env.PATH} ${process.env.NOT_SET_ANYWHERE}` })
