export const e = "e"
