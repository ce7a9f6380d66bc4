exports.a = "a"
module.exports.b = 1
