import { z } from "./zod.mjs";
export function tool(input) {
    return input;
}
tool.schema = z;
