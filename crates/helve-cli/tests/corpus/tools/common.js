// call: {}
// => a1 common
const { tool } = require("@opencode-ai/plugin")
const path = require("path")
const lib = require("./lib/common.cjs")
module.exports = tool({ description: "CommonJS", args: {}, execute: async () => lib.a + lib.b + " " + path.basename(__filename, ".js") })
