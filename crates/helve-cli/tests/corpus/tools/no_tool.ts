// problem: .opencode/tool/no_tool.ts: the file exports no tool
export const helper = 1
