// problem: .opencode/tool/broken_syntax.ts:3: 
const a = 1
export default {,}
