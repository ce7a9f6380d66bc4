export const a: string = "a"
