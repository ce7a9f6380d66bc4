// The module "node:fs/promises" with `exists`, which only bun has.
import * as fs from "node:fs/promises";

export * from "node:fs/promises";

export const exists =
  fs.exists ??
  ((path) =>
    fs.access(path).then(
      () => true,
      () => false,
    ));

export default { ...fs.default, exists };
