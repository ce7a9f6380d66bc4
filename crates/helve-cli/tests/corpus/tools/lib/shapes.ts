export interface Shape { name: string; size: number }
export const sizes = { a: 1, b: 2 } as const
