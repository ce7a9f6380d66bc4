// call: {}
// => a b c d e
import { tool } from "@opencode-ai/plugin"
import { a } from "./lib/a"
import { b } from "./lib/b.js"
import { c } from "./lib/c.ts"
import d from "./lib/deep"
import { e } from "../shared/e"
export default tool({ description: "d", args: {}, execute: async () => [a, b, c, d, e].join(" ") })
