// call: {}
// => a1 mixes
import { tool } from "@opencode-ai/plugin"
import { a } from "./lib/common.cjs"
const fs = require("fs")
const own = require("./lib/common.cjs")
export default tool({ description: "require in a module", args: {}, execute: async () => `${a}${own.b} ${fs.existsSync(__dirname) ? "mixes" : ""}` })
