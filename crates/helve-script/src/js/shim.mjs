// Implements the commonly used part of Bun's API on node: `$`, spawn, spawnSync, file, write, which, sleep, serve and a
// few more.
import childProcess from "node:child_process";
import crypto from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { Readable } from "node:stream";
import { fileURLToPath, pathToFileURL } from "node:url";
import { hash } from "./hash.mjs";
import { connect, serve } from "./sockets.mjs";

const environment = (extra) => (extra ? { ...extra } : process.env);

/** Quotes a value for the shell. An array becomes several words. */
function quote(value) {
  if (Array.isArray(value)) return value.map(quote).join(" ");
  if (value && typeof value === "object" && typeof value.raw === "string") return value.raw;
  const text = String(value);
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

class ShellOutput {
  constructor(stdout, stderr, exitCode) {
    this.stdout = stdout;
    this.stderr = stderr;
    this.exitCode = exitCode;
  }
  text(encoding) {
    return this.stdout.toString(encoding);
  }
  json() {
    return JSON.parse(this.stdout.toString());
  }
  bytes() {
    return new Uint8Array(this.stdout);
  }
  arrayBuffer() {
    return new Uint8Array(this.stdout).buffer;
  }
  blob() {
    return new Blob([this.stdout]);
  }
}

export class ShellError extends Error {
  constructor(output) {
    super(`Failed with exit code ${output.exitCode}`);
    this.name = "ShellError";
    this.exitCode = output.exitCode;
    this.stdout = output.stdout;
    this.stderr = output.stderr;
    this.info = output;
  }
  text(encoding) {
    return this.stdout.toString(encoding);
  }
  json() {
    return JSON.parse(this.stdout.toString());
  }
}

/** A shell command, which starts when it is awaited. */
class ShellPromise {
  #command;
  #settings;
  #running;
  constructor(command, settings) {
    this.#command = command;
    this.#settings = { ...settings };
  }
  cwd(folder) {
    this.#settings.cwd = folder;
    return this;
  }
  env(variables) {
    this.#settings.env = variables;
    return this;
  }
  quiet() {
    return this;
  }
  nothrow() {
    this.#settings.throws = false;
    return this;
  }
  throws(on) {
    this.#settings.throws = on;
    return this;
  }
  run() {
    return this.#run();
  }
  #run() {
    this.#running ??= new Promise((resolve, reject) => {
      const { cwd, env, throws } = this.#settings;
      const child = childProcess.spawn("bash", ["-c", this.#command], {
        cwd: cwd === undefined ? undefined : String(cwd),
        env: environment(env),
        stdio: ["ignore", "pipe", "pipe"],
      });
      const stdout = [];
      const stderr = [];
      child.stdout.on("data", (chunk) => stdout.push(chunk));
      child.stderr.on("data", (chunk) => stderr.push(chunk));
      child.on("error", reject);
      child.on("close", (code) => {
        const output = new ShellOutput(Buffer.concat(stdout), Buffer.concat(stderr), code ?? 1);
        if (output.exitCode !== 0 && throws !== false) reject(new ShellError(output));
        else resolve(output);
      });
    });
    return this.#running;
  }
  then(done, failed) {
    return this.#run().then(done, failed);
  }
  catch(failed) {
    return this.#run().catch(failed);
  }
  finally(always) {
    return this.#run().finally(always);
  }
  text(encoding) {
    return this.#run().then((output) => output.text(encoding));
  }
  json() {
    return this.#run().then((output) => output.json());
  }
  bytes() {
    return this.#run().then((output) => output.bytes());
  }
  arrayBuffer() {
    return this.#run().then((output) => output.arrayBuffer());
  }
  blob() {
    return this.#run().then((output) => output.blob());
  }
  async *lines() {
    const text = await this.text();
    const lines = text.split("\n");
    if (lines.at(-1) === "") lines.pop();
    yield* lines;
  }
}

function makeShell(settings) {
  const shell = (strings, ...values) => {
    let command = strings.raw?.[0] ?? strings[0];
    values.forEach((value, index) => {
      command += quote(value) + (strings.raw?.[index + 1] ?? strings[index + 1]);
    });
    return new ShellPromise(command, settings);
  };
  const set = (name) => (value) => {
    settings[name] = value;
    return shell;
  };
  shell.cwd = set("cwd");
  shell.env = set("env");
  shell.throws = set("throws");
  shell.nothrow = () => shell.throws(false);
  shell.escape = (text) => quote(String(text));
  shell.braces = (text) => [String(text)];
  shell.ShellError = ShellError;
  shell.Shell = class Shell {
    constructor() {
      return makeShell({});
    }
  };
  return shell;
}

export const $ = makeShell({});

/** Adds Bun's reading methods to a web stream. */
function withReaders(stream) {
  const all = async () => {
    const chunks = [];
    for await (const chunk of stream) chunks.push(Buffer.from(chunk));
    return Buffer.concat(chunks);
  };
  return Object.assign(stream, {
    text: async () => (await all()).toString(),
    json: async () => JSON.parse((await all()).toString()),
    bytes: async () => new Uint8Array(await all()),
    arrayBuffer: async () => new Uint8Array(await all()).buffer,
    blob: async () => new Blob([await all()]),
  });
}

function command(first, second) {
  return Array.isArray(first) ? [first, second ?? {}] : [first.cmd, first];
}

function output(kind) {
  if (kind === undefined || kind === "pipe") return "pipe";
  return kind === null || kind === "ignore" ? "ignore" : kind === "inherit" ? "inherit" : kind;
}

function missing(program) {
  const error = new Error(`Executable not found in $PATH: "${program}"`);
  error.code = "ENOENT";
  return error;
}

export function which(name, options) {
  const isProgram = (file) => {
    try {
      fs.accessSync(file, fs.constants.X_OK);
      return fs.statSync(file).isFile();
    } catch {
      return false;
    }
  };
  if (name.includes("/")) return isProgram(name) ? path.resolve(name) : null;
  const folders = (options?.PATH ?? process.env.PATH ?? "").split(":").filter(Boolean);
  return folders.map((folder) => path.join(folder, name)).find(isProgram) ?? null;
}

export function spawn(first, second) {
  const [cmd, options] = command(first, second);
  const [program, ...args] = cmd.map(String);
  if (!which(program, { PATH: options.env?.PATH })) throw missing(program);
  const input = options.stdin;
  const isData = typeof input === "string" || ArrayBuffer.isView(input) || input instanceof Blob || input instanceof Response;
  const stdin = input === "pipe" || isData ? "pipe" : input === "inherit" ? "ignore" : "ignore";
  const child = childProcess.spawn(program, args, {
    cwd: options.cwd,
    env: environment(options.env),
    stdio: [stdin, output(options.stdout), options.stderr === undefined ? "inherit" : output(options.stderr)],
    signal: options.signal,
    timeout: options.timeout,
    killSignal: options.killSignal,
  });
  child.on("error", () => {});
  child.stdin?.on("error", () => {});
  if (isData) {
    const data = input instanceof Blob || input instanceof Response ? input.arrayBuffer().then(Buffer.from) : Promise.resolve(input);
    void data.then((bytes) => child.stdin.end(bytes));
  }
  const exited = new Promise((resolve) => {
    child.on("close", (code, signal) => {
      const exitCode = code ?? (signal ? 128 + 15 : 1);
      options.onExit?.(subprocess, code, signal, undefined);
      resolve(exitCode);
    });
  });
  const subprocess = {
    pid: child.pid,
    stdin: child.stdin && {
      write: (data) => child.stdin.write(data),
      end: (data) => child.stdin.end(data),
      flush: () => {},
    },
    stdout: child.stdout ? withReaders(Readable.toWeb(child.stdout)) : undefined,
    stderr: child.stderr ? withReaders(Readable.toWeb(child.stderr)) : undefined,
    exited,
    kill: (signal) => child.kill(signal),
    ref: () => child.ref(),
    unref: () => child.unref(),
    get exitCode() {
      return child.exitCode;
    },
    get signalCode() {
      return child.signalCode;
    },
    get killed() {
      return child.killed;
    },
  };
  subprocess.readable = subprocess.stdout;
  return subprocess;
}

export function spawnSync(first, second) {
  const [cmd, options] = command(first, second);
  const [program, ...args] = cmd.map(String);
  if (!which(program, { PATH: options.env?.PATH })) throw missing(program);
  const isData = typeof options.stdin === "string" || ArrayBuffer.isView(options.stdin);
  const result = childProcess.spawnSync(program, args, {
    cwd: options.cwd,
    env: environment(options.env),
    input: isData ? options.stdin : undefined,
    stdio: [isData ? "pipe" : "ignore", output(options.stdout), output(options.stderr)],
    timeout: options.timeout,
    maxBuffer: options.maxBuffer ?? 64 << 20,
  });
  return {
    pid: result.pid,
    stdout: result.stdout ?? undefined,
    stderr: result.stderr ?? undefined,
    exitCode: result.status ?? 1,
    signalCode: result.signal ?? undefined,
    success: result.status === 0,
  };
}

const toPath = (file) => (file instanceof URL || String(file).startsWith("file://") ? fileURLToPath(file) : String(file));

const TYPES = { ".json": "application/json;charset=utf-8", ".txt": "text/plain;charset=utf-8", ".md": "text/markdown", ".html": "text/html;charset=utf-8", ".js": "text/javascript;charset=utf-8", ".png": "image/png" };

export function file(name, options) {
  const at = toPath(name);
  const stat = () => {
    try {
      return fs.statSync(at);
    } catch {
      return undefined;
    }
  };
  return {
    name: at,
    type: options?.type ?? TYPES[path.extname(at)] ?? "application/octet-stream",
    get size() {
      return stat()?.size ?? 0;
    },
    get lastModified() {
      return stat()?.mtimeMs ?? 0;
    },
    exists: async () => stat()?.isFile() ?? false,
    text: () => fs.promises.readFile(at, "utf8"),
    json: async () => JSON.parse(await fs.promises.readFile(at, "utf8")),
    bytes: async () => new Uint8Array(await fs.promises.readFile(at)),
    arrayBuffer: async () => new Uint8Array(await fs.promises.readFile(at)).buffer,
    stream: () => Readable.toWeb(fs.createReadStream(at)),
    slice: (from, to) => ({ text: async () => (await fs.promises.readFile(at)).subarray(from, to).toString() }),
    write: (data) => write(at, data),
    delete: () => fs.promises.unlink(at),
    unlink: () => fs.promises.unlink(at),
    stat: () => fs.promises.stat(at),
    writer: () => {
      const stream = fs.createWriteStream(at);
      return { write: (data) => stream.write(data), flush: () => {}, end: () => new Promise((done) => stream.end(done)) };
    },
  };
}

export async function write(target, data) {
  const at = typeof target === "object" && !(target instanceof URL) && target.name ? target.name : toPath(target);
  let bytes = data;
  if (data && typeof data === "object" && typeof data.arrayBuffer === "function") bytes = Buffer.from(await data.arrayBuffer());
  else if (data instanceof ArrayBuffer) bytes = Buffer.from(data);
  else if (Array.isArray(data)) bytes = data.join("");
  await fs.promises.mkdir(path.dirname(at), { recursive: true });
  await fs.promises.writeFile(at, bytes);
  return Buffer.byteLength(bytes);
}

const milliseconds = (time) => (time instanceof Date ? time.getTime() - Date.now() : Number(time));

export const sleep = (time) => new Promise((done) => setTimeout(done, milliseconds(time)));
export const sleepSync = (time) => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds(time));
};

export function randomUUIDv7() {
  const bytes = crypto.randomBytes(16);
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes[6] = (bytes[6] & 0x0f) | 0x70;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = bytes.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

export class CryptoHasher {
  #hash;
  constructor(algorithm) {
    this.#hash = crypto.createHash(algorithm);
  }
  update(data) {
    this.#hash.update(data);
    return this;
  }
  digest(encoding) {
    return this.#hash.digest(encoding);
  }
  static hash(algorithm, data, encoding) {
    return crypto.createHash(algorithm).update(data).digest(encoding);
  }
}

/** Finds files that match a pattern with `*`, `**`, `?` and `{a,b}`. */
export class Glob {
  #regex;
  constructor(pattern) {
    let source = "";
    for (let at = 0; at < pattern.length; at++) {
      const c = pattern[at];
      if (pattern.startsWith("**/", at)) {
        source += "(?:.*/)?";
        at += 2;
      } else if (pattern.startsWith("**", at)) {
        source += ".*";
        at += 1;
      } else if (c === "*") source += "[^/]*";
      else if (c === "?") source += "[^/]";
      else if (c === "{") source += "(?:";
      else if (c === "}") source += ")";
      else if (c === ",") source += "|";
      else source += c.replace(/[.+^$()|[\]\\]/, "\\$&");
    }
    this.#regex = new RegExp(`^${source}$`);
  }
  match(text) {
    return this.#regex.test(text);
  }
  *scanSync(options) {
    const { cwd = process.cwd(), dot = false, absolute = false, onlyFiles = true } = typeof options === "string" ? { cwd: options } : options ?? {};
    const folders = [""];
    while (folders.length > 0) {
      const folder = folders.pop();
      for (const entry of fs.readdirSync(path.join(cwd, folder), { withFileTypes: true })) {
        if (entry.name.startsWith(".") && !dot) continue;
        const relative = folder ? `${folder}/${entry.name}` : entry.name;
        if (entry.isDirectory()) folders.push(relative);
        if ((entry.isFile() || !onlyFiles) && this.match(relative)) yield absolute ? path.join(cwd, relative) : relative;
      }
    }
  }
  async *scan(options) {
    yield* this.scanSync(options);
  }
}

/** Returns a function in place of a part of Bun that does not exist here. */
export const unavailable = (name) => () => {
  throw new Error(`Bun.${String(name)} is not available on node; install bun to use it`);
};

/** Defines the global `Bun`. */
export function installBun() {
  globalThis.Bun = {
    version: "1.2.0",
    revision: "",
    env: process.env,
    argv: process.argv,
    main: "",
    $,
    spawn,
    spawnSync,
    file,
    write,
    which,
    sleep,
    sleepSync,
    randomUUIDv7,
    CryptoHasher,
    Glob,
    fileURLToPath,
    pathToFileURL,
    nanoseconds: () => Number(process.hrtime.bigint()),
    inspect: (value) => String(value),
    escapeHTML: (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`),
    stripANSI: (text) => String(text).replace(/\u001b\[[0-9;]*[A-Za-z]/g, ""),
    deepEquals: (one, other) => JSON.stringify(one) === JSON.stringify(other),
    readableStreamToText: async (stream) => withReaders(stream).text(),
    readableStreamToJSON: async (stream) => withReaders(stream).json(),
    readableStreamToBytes: async (stream) => withReaders(stream).bytes(),
    readableStreamToArrayBuffer: async (stream) => withReaders(stream).arrayBuffer(),
    hash,
    serve,
    connect,
    build: unavailable("build"),
    listen: unavailable("listen"),
  };
}
