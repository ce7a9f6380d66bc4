export const inner = "d"
