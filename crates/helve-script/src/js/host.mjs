// The helper process: loads tools and plugins, and runs them for Helve.
// Requests come in as JSON lines on descriptor 4, answers go out on descriptor 3. Descriptor 1 is standard error, so
// that the output of a tool is not mistaken for an answer.
import fs from "node:fs";
import net from "node:net";
import { z } from "./zod.mjs";
import { jsonSchema, validate } from "./schema.mjs";
import { installBun } from "./shim.mjs";
import { loadPlugin, runHook, findPluginTool, disposeAll } from "./plugin.mjs";

// Saved before a tool can replace them.
const { stringify, parse } = JSON;
const writeSync = fs.writeSync;
const Buffer_ = Buffer;
const exit = process.exit.bind(process);
const isBun = Boolean(process.versions.bun);

/** Longer texts are cut before they are sent. */
const MAX_TEXT = 8 << 20;
/** Longer messages are not sent. */
const MAX_MESSAGE = 15 << 20;

function send(message) {
  let line = stringify(message);
  if (line.length > MAX_MESSAGE) {
    line = stringify({ id: message.id, error: { message: `the answer has ${line.length} characters; the limit is ${MAX_MESSAGE}` } });
  }
  let bytes = Buffer_.from(line + "\n");
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(writeSync(3, bytes));
    } catch (error) {
      if (error?.code === "EPIPE") exit(0);
      if (error?.code !== "EAGAIN") throw error;
    }
  }
}

/** Returns the message and stack of a thrown value of any type. */
function describe(thrown) {
  try {
    return describeThrown(thrown);
  } catch {
    // A proxy or a getter that throws itself.
    return { message: "a value was thrown that cannot be shown" };
  }
}

function describeThrown(thrown) {
  if (thrown instanceof Error || (thrown && typeof thrown === "object" && "message" in thrown)) {
    const name = typeof thrown.name === "string" && thrown.name !== "Error" ? `${thrown.name}: ` : "";
    return { message: `${name}${String(thrown.message)}`.slice(0, 20_000), stack: String(thrown.stack ?? "").slice(0, 20_000) };
  }
  let message;
  try {
    message = typeof thrown === "string" ? thrown : stringify(thrown);
  } catch {
    message = String(thrown);
  }
  return { message: String(message ?? thrown).slice(0, 20_000) };
}

// Requests that tools and plugins sent to Helve and that are not answered yet.
const waiting = new Map();
let nextRequest = 1;

function request(call, method, params) {
  return new Promise((resolve, reject) => {
    const number = nextRequest++;
    waiting.set(number, { resolve, reject });
    send({ id: call, request: number, method, params });
  });
}

const aborts = new Map();

/** Creates the `ToolContext` that `@opencode-ai/plugin` declares. */
function toolContext(id, context) {
  const abort = new AbortController();
  aborts.set(id, abort);
  return {
    ...context,
    abort: abort.signal,
    metadata: (value) => {
      send({ id, metadata: { title: value?.title, metadata: value?.metadata } });
    },
    ask: (ask) => request(id, "ask", ask ?? {}).then(() => undefined),
  };
}

function cut(text) {
  return text.length > MAX_TEXT ? text.slice(0, MAX_TEXT) + `\n[${text.length - MAX_TEXT} further characters were dropped]` : text;
}

/** Converts the return value of a tool, which may be a string or an object. */
function toResult(value) {
  if (typeof value === "string") return { output: cut(value) };
  if (value === undefined || value === null) return { output: "" };
  if (typeof value === "object" && "output" in value) {
    const { title, output, metadata, attachments } = value;
    return {
      title: typeof title === "string" ? title : undefined,
      output: cut(typeof output === "string" ? output : text(output)),
      metadata: metadata && typeof metadata === "object" ? metadata : undefined,
      attachments: Array.isArray(attachments) ? attachments.slice(0, 21).map(({ mime, url }) => ({ mime, url })) : undefined,
    };
  }
  return { output: cut(text(value)) };
}

function text(value) {
  if (typeof value === "object" && value !== null) return stringify(value, null, 2) ?? "";
  return value === undefined || value === null ? "" : String(value);
}

/** Returns the exports of a module by name. For CommonJS, these are the fields of `module.exports`. */
async function exportsOf(url) {
  const module = await import(url);
  if (module.__helveCommonJs) {
    const value = module.default;
    const fields = value && typeof value === "object" && !isTool(value) ? { ...value } : {};
    return isTool(value) || typeof value === "function" ? { default: value } : fields;
  }
  return module;
}

function isTool(value) {
  return Boolean(value) && typeof value === "object" && typeof value.execute === "function" && "description" in value;
}

const operations = {
  async list({ url }) {
    const module = await exportsOf(url);
    const tools = [];
    const skipped = [];
    for (const name of Object.keys(module)) {
      const value = module[name];
      if (!isTool(value)) {
        skipped.push(name);
        continue;
      }
      tools.push(listed(name, value));
    }
    return { tools, skipped };
  },

  async call({ id, url, name, args, context }) {
    const tool = (await exportsOf(url))[name];
    if (!isTool(tool)) throw new Error(`the file does not export the tool "${name}" any more`);
    return run(id, tool, args, context);
  },

  plugin: (message) => loadPlugin(message, { request, listed, isTool, exportsOf, describe }),
  hook: (message) => runHook(message, describe),
  pluginTool: ({ id, plugin, name, args, context }) => run(id, findPluginTool(plugin, name), args, context),
  dispose: () => disposeAll(),
  ping: async () => ({}),
};

function listed(name, tool) {
  const entry = { export: name, description: typeof tool.description === "string" ? tool.description : String(tool.description ?? "") };
  try {
    entry.schema = jsonSchema(tool.args ?? {});
  } catch (error) {
    entry.problem = describe(error).message;
  }
  return entry;
}

async function run(id, tool, args, context) {
  const checked = await validate(tool.args ?? {}, args);
  if (checked.problems.length > 0) return { invalid: checked.problems };
  try {
    return toResult(await tool.execute(checked.args, toolContext(id, context)));
  } finally {
    aborts.delete(id);
  }
}

async function handle(message) {
  if (message.op === "abort") {
    aborts.get(message.id)?.abort();
    return;
  }
  if (message.op === "answer") {
    const entry = waiting.get(message.request);
    waiting.delete(message.request);
    if ("error" in message) entry?.reject(new Error(message.error));
    else entry?.resolve(message.ok);
    return;
  }
  const { id } = message;
  try {
    const operation = operations[message.op];
    if (!operation) throw new Error(`unknown operation ${message.op}`);
    send({ id, ok: (await operation(message)) ?? null });
  } catch (error) {
    send({ id, error: describe(error) });
  }
}

// A line may arrive in several chunks. Array methods are not used, because tools may replace them.
let pieces = [];
const concat = Buffer_.concat;
function receive(chunk) {
  let start = 0;
  for (let end; (end = chunk.indexOf(10, start)) !== -1; start = end + 1) {
    pieces[pieces.length] = chunk.subarray(start, end);
    const line = concat(pieces).toString();
    pieces = [];
    if (line) void handle(parse(line));
  }
  if (start < chunk.length) pieces[pieces.length] = chunk.subarray(start);
}

process.exit = (code) => {
  throw new Error(`process.exit(${code ?? ""}) was called; a tool must return or throw instead`);
};
process.on("unhandledRejection", (error) => {
  console.error("unhandled rejection:", describe(error).stack || describe(error).message);
});
process.on("uncaughtException", (error) => {
  // The error may have left the process in an inconsistent state, so it ends. Helve starts another one.
  send({ fatal: describe(error) });
  exit(70);
});

if (!isBun) installBun();
globalThis.__helveZod = z;
// Requests from Helve. If the pipe closes, Helve has ended.
if (isBun) {
  void (async () => {
    for await (const chunk of Bun.file(4).stream()) receive(Buffer_.from(chunk));
    exit(0);
  })();
} else {
  const input = new net.Socket({ fd: 4, readable: true, writable: false });
  input.on("data", receive);
  input.on("close", () => exit(0));
  input.on("error", () => exit(0));
}
send({ hello: 1, runtime: isBun ? "bun" : "node", version: isBun ? process.versions.bun : process.versions.node });
