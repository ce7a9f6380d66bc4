export const c = "c"
