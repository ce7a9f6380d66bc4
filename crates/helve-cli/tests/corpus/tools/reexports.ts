// call reexports_greet: {"name":"bo"}
// => hello bo
export { default as greet } from "./plain"
export * from "./lib/a"
