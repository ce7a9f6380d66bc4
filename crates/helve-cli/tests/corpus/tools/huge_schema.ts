// problem: .opencode/tool/huge_schema.ts: the tool "huge_schema" is ignored: its schema has 
import { tool } from "@opencode-ai/plugin"
export default tool({ description: "d", args: { a: tool.schema.enum(Array.from({ length: 20_000 }, (_, n) => `value ${n}`) as any) }, execute: async () => "" })
