// problem: .opencode/tool/throws_at_load.ts:3: at load
const a = 1
throw new Error("at load")
export default { description: "d", args: {}, execute: async () => "" }
