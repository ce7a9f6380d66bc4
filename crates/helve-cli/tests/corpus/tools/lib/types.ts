export interface Unused { a?: 1 }
export type AlsoUnused = object
export type OnlyType = unknown
export const used = (a: Unused) => a
