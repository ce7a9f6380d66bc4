// problem: .opencode/tool/missing_package.ts:2: the npm package "no-such-package-here" is not installed; run `npm install no-such-package-here` in 
import a from "no-such-package-here"
export default { description: "d", args: {}, execute: async () => a }
