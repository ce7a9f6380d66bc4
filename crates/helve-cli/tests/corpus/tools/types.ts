// call: {}
// => loud 3 [object] A
import { tool } from "@opencode-ai/plugin"
import { Unused, used, type AlsoUnused } from "./lib/types"
import type { OnlyType } from "./lib/types"
enum Volume { Quiet = "quiet", Loud = "loud" }
const enum Level { A = 1, B = 2 }
namespace Names { export const a = "A" }
abstract class Base<T extends object = object> { constructor(protected readonly value: T, public count = 3) {} abstract show(): string }
class Impl extends Base { override show() { return `[${typeof this.value}]` } declare extra: string }
function over(a: string): string
function over(a: number): number
function over(a: any): any { return a }
export default tool({
  description: "TypeScript syntax",
  args: {},
  async execute(): Promise<string> {
    const x = used({} as Unused) satisfies OnlyType
    const y = <AlsoUnused>x!
    const impl = new Impl(y as object)
    return `${over(Volume.Loud)} ${impl.count + Level.A - 1} ${impl.show()} ${Names.a}`
  },
})
