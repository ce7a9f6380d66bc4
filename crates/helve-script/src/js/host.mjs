// The helper process: loads tools and plugins, and runs them for Helve.
// Requests come in as JSON lines on descriptor 4, answers go out on descriptor 3. Descriptor 1 is standard error, so
// that the output of a tool is not mistaken for an answer.
import fs from "node:fs";
import net from "node:net";
import { Readable } from "node:stream";
import { z } from "./zod.mjs";
import { jsonSchema, validate } from "./schema.mjs";
import { installBun } from "./shim.mjs";
import { loadPlugin, runHook, findPluginTool, disposeAll } from "./plugin.mjs";

// Saved before a tool can replace them. `method(f)` returns a function that takes `this` as its first argument.
const { stringify, parse } = JSON;
const { writeSync, fstatSync } = fs;
const Buffer_ = Buffer;
const Promise_ = Promise;
const Error_ = Error;
const String_ = String;
const { isArray } = Array;
const { keys } = Object;
const { bind, call: callFunction } = Function.prototype;
const method = bind.bind(callFunction);
const sliceText = method(String.prototype.slice);
const getEntry = method(Map.prototype.get);
const setEntry = method(Map.prototype.set);
const deleteEntry = method(Map.prototype.delete);
const findByte = method(Buffer.prototype.indexOf);
const subarray = method(Buffer.prototype.subarray);
const decode = method(Buffer.prototype.toString);
const abortCall = method(AbortController.prototype.abort);
const isBun = Boolean(process.versions.bun);
// Unlike `process.exit`, this runs no code of tools.
const exit = (process.reallyExit ?? process.exit).bind(process);

/** Longer texts are cut before they are sent. */
const MAX_TEXT = 8 << 20;
/** Longer messages are not sent. */
const MAX_MESSAGE = 15 << 20;

// Older versions of node resolve symbolic links wrongly if the last `stat` with plain numbers was that of a pipe.
const statPipe = () => fstatSync(3, { bigint: true });

/** Identifies the pipe of the answers. A tool may close it, and open another file with the same number. */
const answers = statPipe();

/** Ends the process because it cannot send answers any more. Helve shows the last output. */
function endWithout(what) {
  try {
    writeSync(2, `${what}\n`);
  } catch {
    // Then the exit code must be enough.
  }
  exit(70);
}

function checkPipe() {
  try {
    const { dev, ino } = statPipe();
    if (dev === answers.dev && ino === answers.ino) return;
  } catch {
    // It is closed.
  }
  endWithout("a tool closed descriptor 3, which carries the answers");
}

function send(message) {
  checkPipe();
  let line = stringify(message);
  if (line.length > MAX_MESSAGE) {
    line = stringify({ id: message.id, error: { message: `the answer has ${line.length} characters; the limit is ${MAX_MESSAGE}` } });
  }
  let bytes = Buffer_.from(line + "\n");
  while (bytes.length > 0) {
    try {
      bytes = subarray(bytes, writeSync(3, bytes));
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
  if (thrown instanceof Error_ || (thrown && typeof thrown === "object" && "message" in thrown)) {
    const name = typeof thrown.name === "string" && thrown.name !== "Error" ? `${thrown.name}: ` : "";
    return { message: short(`${name}${String_(thrown.message)}`), stack: short(String_(thrown.stack ?? "")) };
  }
  let message;
  try {
    message = typeof thrown === "string" ? thrown : stringify(thrown);
  } catch {
    message = String_(thrown);
  }
  return { message: short(String_(message ?? thrown)) };
}

function short(text) {
  return sliceText(text, 0, 20_000);
}

// Requests that tools and plugins sent to Helve and that are not answered yet.
const waiting = new Map();
let nextRequest = 1;

function request(call, method, params) {
  return new Promise_((resolve, reject) => {
    const number = nextRequest++;
    setEntry(waiting, number, { resolve, reject });
    send({ id: call, request: number, method, params });
  });
}

const aborts = new Map();

/** Creates the `ToolContext` that `@opencode-ai/plugin` declares. */
function toolContext(id, context) {
  const abort = new AbortController();
  setEntry(aborts, id, abort);
  return {
    ...context,
    abort: abort.signal,
    metadata: (value) => {
      send({ id, metadata: { title: value?.title, metadata: value?.metadata } });
    },
    ask: async (ask) => {
      await request(id, "ask", ask ?? {});
    },
  };
}

function cut(text) {
  return text.length > MAX_TEXT ? sliceText(text, 0, MAX_TEXT) + `\n[${text.length - MAX_TEXT} further characters were dropped]` : text;
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
      attachments: isArray(attachments) ? toAttachments(attachments) : undefined,
    };
  }
  return { output: cut(text(value)) };
}

function toAttachments(values) {
  const attachments = [];
  for (let index = 0; index < values.length && index < 21; index++) {
    attachments[index] = { mime: values[index].mime, url: values[index].url };
  }
  return attachments;
}

function text(value) {
  if (typeof value === "object" && value !== null) return stringify(value, null, 2) ?? "";
  return value === undefined || value === null ? "" : String_(value);
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
    const names = keys(module);
    for (let index = 0; index < names.length; index++) {
      const value = module[names[index]];
      if (isTool(value)) tools[tools.length] = listed(names[index], value);
      else skipped[skipped.length] = names[index];
    }
    return { tools, skipped };
  },

  async call({ id, url, name, args, context }) {
    const tool = (await exportsOf(url))[name];
    if (!isTool(tool)) throw new Error_(`the file does not export the tool "${name}" any more`);
    return run(id, tool, args, context);
  },

  plugin: (message) => loadPlugin(message, { request, listed, isTool, exportsOf, describe }),
  hook: (message) => runHook(message, describe),
  pluginTool: ({ id, plugin, name, args, context }) => run(id, findPluginTool(plugin, name), args, context),
  dispose: () => disposeAll(),
  ping: async () => ({}),
};

function listed(name, tool) {
  const entry = { export: name, description: typeof tool.description === "string" ? tool.description : String_(tool.description ?? "") };
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
    deleteEntry(aborts, id);
  }
}

async function handle(message) {
  if (message.op === "abort") {
    const abort = getEntry(aborts, message.id);
    if (abort) abortCall(abort);
    return;
  }
  if (message.op === "answer") {
    const entry = getEntry(waiting, message.request);
    deleteEntry(waiting, message.request);
    if ("error" in message) entry?.reject(new Error_(message.error));
    else entry?.resolve(message.ok);
    return;
  }
  const { id } = message;
  // Until this is sent, no code of a tool has run for the request, so Helve may repeat it in another process.
  send({ id, begun: true });
  try {
    const operation = operations[message.op];
    if (!operation) throw new Error_(`unknown operation ${message.op}`);
    send({ id, ok: (await operation(message)) ?? null });
  } catch (error) {
    try {
      send({ id, error: describe(error) });
    } catch {
      endWithout("an answer could not be sent");
    }
  }
}

// A line may arrive in several chunks. Array methods are not used, because tools may replace them.
let pieces = [];
const concat = Buffer_.concat;
function receive(chunk) {
  let start = 0;
  for (let end; (end = findByte(chunk, 10, start)) !== -1; start = end + 1) {
    pieces[pieces.length] = subarray(chunk, start, end);
    const line = decode(concat(pieces));
    pieces = [];
    if (line) void handle(parse(line));
  }
  if (start < chunk.length) pieces[pieces.length] = subarray(chunk, start);
}

process.exit = (code) => {
  throw new Error_(`process.exit(${code ?? ""}) was called; a tool must return or throw instead`);
};
process.on("unhandledRejection", (error) => {
  console.error("unhandled rejection:", describe(error).stack || describe(error).message);
});
process.on("uncaughtException", (error) => {
  // The error may have left the process in an inconsistent state, so it ends. Helve starts another one.
  try {
    send({ fatal: describe(error) });
  } finally {
    exit(70);
  }
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
  // The method of sockets uses `Function.prototype.call`, which a tool may replace.
  input.read = Readable.prototype.read;
  input.on("data", receive);
  input.on("close", () => exit(0));
  input.on("error", () => exit(0));
}
send({ hello: 1, runtime: isBun ? "bun" : "node", version: isBun ? process.versions.bun : process.versions.node });
