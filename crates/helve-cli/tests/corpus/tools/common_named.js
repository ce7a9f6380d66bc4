// call common_named_one: {}
// => one
exports.one = { description: "d", args: {}, execute: async () => "one" }
exports.helper = 3
