export const b = "b"
