// Implements `Bun.serve` and `Bun.connect` on node, without web sockets and TLS.
import dns from "node:dns";
import http from "node:http";
import net from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

/** Makes a server listen before this function returns, so that its port is known, as with bun. */
function listenNow(server, { unix, port, hostname }) {
  // The error is reported later, but also shows in the missing address.
  server.on("error", () => {});
  if (unix) return server.listen(unix);
  const address = hostname === "localhost" ? "127.0.0.1" : hostname;
  if (!address || net.isIP(address) === 0) throw new TypeError(`Bun.serve on node needs an IP address as hostname, not "${hostname}"`);
  // Node looks up even an IP address, and listens when it has the answer. This lookup answers at once.
  const { lookup } = dns;
  const family = net.isIP(address);
  dns.lookup = (_name, options, done) => {
    if (options?.all) done(null, [{ address, family }]);
    else (done ?? options)(null, address, family);
  };
  try {
    server.listen(port, address);
  } finally {
    dns.lookup = lookup;
  }
}

/** Returns the handler of a request among `routes`, and the values of the parameters in its path. */
function findRoute(routes, method, path) {
  const parts = path.split("/");
  for (const [pattern, route] of Object.entries(routes ?? {})) {
    const params = matchPath(pattern.split("/"), parts);
    if (!params) continue;
    const chosen = route instanceof Response || typeof route === "function" ? route : route?.[method];
    if (chosen) return { handler: chosen instanceof Response ? () => chosen.clone() : chosen, params };
  }
  return undefined;
}

function matchPath(pattern, parts) {
  const params = {};
  for (let index = 0; index < pattern.length; index++) {
    const part = pattern[index];
    if (part === "*" && index === pattern.length - 1) return params;
    if (index >= parts.length) return undefined;
    if (part.startsWith(":")) params[part.slice(1)] = decodeURIComponent(parts[index]);
    else if (part !== parts[index]) return undefined;
  }
  return pattern.length === parts.length ? params : undefined;
}

function toRequest(incoming, origin) {
  const headers = new Headers();
  for (let index = 0; index < incoming.rawHeaders.length; index += 2) headers.append(incoming.rawHeaders[index], incoming.rawHeaders[index + 1]);
  const { method } = incoming;
  const hasBody = method !== "GET" && method !== "HEAD";
  const url = new URL(incoming.url, incoming.headers.host ? `http://${incoming.headers.host}` : origin);
  return new Request(url, { method, headers, body: hasBody ? Readable.toWeb(incoming) : undefined, duplex: "half" });
}

async function send(response, outgoing) {
  const headers = {};
  for (const [name, value] of response.headers) if (name !== "set-cookie") headers[name] = value;
  const cookies = response.headers.getSetCookie();
  if (cookies.length > 0) headers["set-cookie"] = cookies;
  outgoing.writeHead(response.status, headers);
  outgoing.flushHeaders();
  if (response.body) await pipeline(Readable.fromWeb(response.body), outgoing);
  else outgoing.end();
}

export function serve(options) {
  let current = options;
  const origin = () => (options.unix ? "http://localhost" : `http://${options.hostname ?? "localhost"}:${inner.address()?.port}`);
  const respond = async (request) => {
    const route = findRoute(current.routes, request.method, new URL(request.url).pathname);
    if (route) return await route.handler(Object.assign(request, { params: route.params }), server);
    return current.fetch ? await current.fetch.call(server, request, server) : new Response("Not Found", { status: 404 });
  };
  const inner = http.createServer(async (incoming, outgoing) => {
    server.pendingRequests += 1;
    try {
      let response;
      try {
        response = await respond(toRequest(incoming, origin()));
      } catch (error) {
        if (!current.error) console.error(error);
        response = await current.error?.(error);
        response ??= new Response("Something went wrong!", { status: 500 });
      }
      await send(response instanceof Response ? response : new Response(null, { status: 204 }), outgoing);
    } catch {
      outgoing.destroy();
    } finally {
      server.pendingRequests -= 1;
    }
  });
  const port = Number(options.port ?? process.env.BUN_PORT ?? process.env.PORT ?? 3000);
  listenNow(inner, { unix: options.unix, port, hostname: options.hostname ?? "0.0.0.0" });
  const address = inner.address();
  if (!address) throw Object.assign(new Error(`Failed to start server. Is port ${port} in use?`), { code: "EADDRINUSE", syscall: "listen" });
  const server = {
    id: options.id ?? "",
    development: false,
    port: address.port,
    hostname: options.unix ? undefined : options.hostname ?? "localhost",
    address,
    url: new URL(options.unix ? `unix://${options.unix}` : `${origin()}/`),
    pendingRequests: 0,
    pendingWebSockets: 0,
    stop(closeConnections = false) {
      const closed = new Promise((done) => inner.close(() => done()));
      if (closeConnections) inner.closeAllConnections();
      else inner.closeIdleConnections();
      return closed;
    },
    reload(changed) {
      current = { ...current, ...changed };
      return server;
    },
    fetch: (request) => respond(request instanceof Request ? request : new Request(new URL(request, origin()))),
    requestIP: () => null,
    timeout() {},
    // Web sockets are not supported, so a request is never upgraded to one.
    upgrade: () => false,
    publish: () => 0,
    subscriberCount: () => 0,
    ref: () => inner.ref(),
    unref: () => inner.unref(),
    [Symbol.dispose ?? Symbol.for("dispose")]: () => void server.stop(true),
  };
  return server;
}

export function connect({ unix, hostname, port, socket: handlers, data }) {
  return new Promise((resolve, reject) => {
    const inner = unix ? net.connect(unix) : net.connect(port, hostname);
    const socket = {
      data,
      write: (bytes) => {
        inner.write(bytes);
        return Buffer.byteLength(bytes);
      },
      end: (bytes) => void inner.end(bytes),
      terminate: () => void inner.destroy(),
      flush() {},
      ref: () => void inner.ref(),
      unref: () => void inner.unref(),
      get remoteAddress() {
        return inner.remoteAddress;
      },
      get localPort() {
        return inner.localPort;
      },
    };
    let failure;
    inner.on("connect", () => {
      resolve(socket);
      handlers.open?.(socket);
    });
    inner.on("data", (chunk) => handlers.data?.(socket, chunk));
    inner.on("drain", () => handlers.drain?.(socket));
    inner.on("end", () => handlers.end?.(socket));
    inner.on("error", (error) => {
      failure = error;
      if (inner.connecting || !inner.remoteAddress) handlers.connectError?.(socket, error);
      else handlers.error?.(socket, error);
      reject(error);
    });
    inner.on("close", () => handlers.close?.(socket, failure));
  });
}
