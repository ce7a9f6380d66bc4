// problem: .opencode/tool/missing_file.ts:2: "./nowhere" does not exist
import { a } from "./nowhere"
export default { description: a, args: {}, execute: async () => a }
