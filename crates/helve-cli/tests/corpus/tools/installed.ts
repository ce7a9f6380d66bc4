// call: {}
// => installed 7 esm
import { tool } from "@opencode-ai/plugin"
import seven, { name } from "some-package"
import { kind } from "@scope/esm-only"
export default tool({ description: "packages", args: {}, execute: async () => `${name} ${seven} ${kind}` })
