// Loads plugins, runs their hooks, and creates the client that is passed to them.
import { $ as ourShell } from "./shim.mjs";

// Saved before a plugin can replace them.
const getEntry = Function.prototype.call.bind(Map.prototype.get);
const Error_ = Error;
const sourceOf = Function.prototype.call.bind(Function.prototype.toString);

const plugins = new Map();

/** Methods of the client that Helve supports. */
const CLIENT = new Set([
  "app.log", "tui.showToast", "session.get", "session.list", "session.messages", "session.todo", "session.create",
  "session.prompt", "session.promptAsync", "config.get", "path.get", "project.current",
]);

/** What plugins provide to opencode besides functions and tools. Helve does not use it. */
const UNUSED = new Set(["auth", "provider"]);

/** Creates a replacement for opencode's server client. Methods that Helve does not support reject. */
function makeClient(request, names = []) {
  const call = async (options) => {
    const method = names.join(".");
    if (!CLIENT.has(method)) throw new Error(`client.${method} is not available in Helve`);
    const { body, path, query } = options ?? {};
    const data = await request(undefined, "client", { method, body, path, query });
    return { data, error: undefined, request: undefined, response: { ok: true, status: 200 } };
  };
  return new Proxy(call, {
    get(_target, name) {
      // Without `then`, `await client` does not take the client for a promise.
      if (typeof name !== "string" || name === "then") return undefined;
      return makeClient(request, [...names, name]);
    },
  });
}

/**
 * Returns the functions of a plugin file, each with the name of its export. A default export with `server` is the whole
 * plugin; in older files, every exported function is a plugin. Classes are helpers that the file exports as well.
 */
function startFunctions(module) {
  const whole = module.default;
  if (typeof whole?.server === "function") return [["default", whole.server.bind(whole)]];
  const starts = new Map();
  for (const [name, exported] of Object.entries(module)) {
    const server = typeof exported?.server === "function" ? exported.server.bind(exported) : undefined;
    const start = isClass(exported) ? undefined : typeof exported === "function" ? exported : server;
    if (start && !starts.has(exported)) starts.set(exported, [name, start]);
  }
  return [...starts.values()];
}

function isClass(value) {
  return typeof value === "function" && /^class\b/.test(sourceOf(value));
}

/** Calls the functions of a plugin file. If one fails, the others are still loaded. */
export async function loadPlugin({ key, url, options, input }, host) {
  const { request, listed, isTool, exportsOf, describe } = host;
  const module = await exportsOf(url);
  const given = {
    client: makeClient(request),
    project: input.project,
    directory: input.directory,
    worktree: input.worktree,
    serverUrl: new URL("http://localhost:4096"),
    $: globalThis.Bun?.$ ?? ourShell,
    experimental_workspace: { register() {} },
  };
  const problems = [];
  const loaded = [];
  const starts = startFunctions(module);
  if (starts.length === 0) throw new Error("the file exports no plugin; a plugin is an exported function");
  for (const [name, start] of starts) {
    try {
      // As in opencode: without options, the parameter is missing.
      const hooks = options ? await start(given, options) : await start(given);
      if (hooks && typeof hooks === "object") loaded.push(hooks);
    } catch (error) {
      problems.push({ export: name, ...describe(error) });
    }
  }
  plugins.set(key, loaded);
  const names = new Set();
  const unused = new Set();
  const tools = [];
  for (const hooks of loaded) {
    for (const [name, hook] of Object.entries(hooks)) {
      if (typeof hook === "function") names.add(name);
      else if (hook && UNUSED.has(name)) unused.add(name);
    }
    for (const [name, tool] of Object.entries(hooks.tool ?? {})) if (isTool(tool)) tools.push(listed(name, tool));
  }
  return { hooks: [...names], unused: [...unused], tools, problems };
}

/** Finds a tool of a plugin by name. If several exports define it, the last one is used. */
export function findPluginTool(key, name) {
  const loaded = getEntry(plugins, key) ?? [];
  for (let index = loaded.length - 1; index >= 0; index--) {
    const found = loaded[index].tool?.[name];
    if (found) return found;
  }
  throw new Error_(`the plugin has no tool "${name}" any more`);
}

/** Runs a hook in all exports of a plugin, in order. Returns `output` as the hooks changed it. */
export async function runHook({ plugin, name, input, output }) {
  const args = output?.args;
  const loaded = getEntry(plugins, plugin) ?? [];
  for (let index = 0; index < loaded.length; index++) {
    const hooks = loaded[index];
    if (typeof hooks[name] !== "function") continue;
    if (output === undefined) await hooks[name](input);
    else await hooks[name](input, output);
  }
  // As in opencode, a hook changes the arguments in place; replacing the object has no effect.
  if (name === "tool.execute.before") output.args = args;
  return output ?? input ?? null;
}

export async function disposeAll() {
  for (const hooks of [...plugins.values()].flat()) {
    try {
      await hooks.dispose?.();
    } catch (error) {
      console.error("dispose failed:", error);
    }
  }
  plugins.clear();
}
