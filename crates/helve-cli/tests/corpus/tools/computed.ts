// call computed_add: {"a":2,"b":3}
// => 5
// call computed_multiply: {"a":2,"b":3}
// => 6
import { tool } from "@opencode-ai/plugin"
const numbers = { a: tool.schema.number(), b: tool.schema.number() } as const
const make = (name: string, work: (a: number, b: number) => number) =>
  tool({ description: `${name}s numbers`, args: numbers, execute: async ({ a, b }) => String(work(a, b)) })
export const add = make("Add", (a, b) => a + b)
export const multiply = make("Multiplie", (a, b) => a * b)
