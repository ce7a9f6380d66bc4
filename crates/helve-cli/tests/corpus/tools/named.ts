// call named_one: {}
// => one
// call named_two: {}
// => two
import { tool } from "@opencode-ai/plugin"
export const one = tool({ description: "One", args: {}, execute: async () => "one" })
export const two = tool({ description: "Two", args: {}, execute: async () => "two" })
export const helper = () => "not a tool"
