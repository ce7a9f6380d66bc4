// call: {"a":"b"}
// => b
export default { description: "A plain object", args: { a: { type: "string" } }, async execute(args) { return args.a } }
