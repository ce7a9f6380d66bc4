"""A language server that misbehaves on demand. Standard library only.

server.py MODE PIDS: every `ERR` in a document is an error, every `WARN` a warning. Appends its process id to the file PIDS.
"""
import json
import mmap
import os
import signal
import subprocess
import sys
import time

MODE, PIDS = sys.argv[1], sys.argv[2]
ENCODING = {"utf-8-columns": "utf-8", "utf-32-columns": "utf-32"}.get(MODE, "utf-16")
PULLS = MODE.startswith("pull")
documents = {}
counts = {}
next_id = 1000


def note_pid(pid):
    with open(PIDS, "a") as file:
        file.write(f"{pid}\n")


def write(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    write(b"Content-Length: %d\r\n\r\n" % len(body) + body)


def request(method, params):
    global next_id
    next_id += 1
    send({"id": next_id, "method": method, "params": params})


def read():
    length = None
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            sys.exit(0)
        line = line.strip()
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
        elif not line and length is not None:
            return json.loads(sys.stdin.buffer.read(length))


def units(text):
    if ENCODING == "utf-8":
        return len(text.encode())
    if ENCODING == "utf-32":
        return len(text)
    return len(text.encode("utf-16-le")) // 2


def position(line, text):
    return {"line": line, "character": units(text)}


def diagnostics(text):
    found = []
    for number, line in enumerate(text.split("\n")):
        for word, severity in (("ERR", 1), ("WARN", 2)):
            at = line.find(word)
            while at >= 0:
                span = {"start": position(number, line[:at]), "end": position(number, line[: at + len(word)])}
                found.append({"range": span, "severity": severity, "code": "E1", "source": "fake", "message": f"found {word}"})
                at = line.find(word, at + 1)
    return found


def publish(uri, version, items):
    params = {"uri": uri, "diagnostics": items}
    if version is not None:
        params["version"] = version
    send({"method": "textDocument/publishDiagnostics", "params": params})


def progress(kind):
    send({"method": "$/progress", "params": {"token": "load", "value": {"kind": kind}}})


def take_memory(size):
    """Allocates memory without using it. Fails if there is a limit."""
    mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def silent_forever():
    while True:
        time.sleep(3600)


def apply(text, change):
    if "range" not in change:
        return change["text"]

    def offset(at):
        lines = text.split("\n")
        before = sum(len(line) + 1 for line in lines[: at["line"]])
        line = lines[at["line"]] if at["line"] < len(lines) else ""
        column = next((n for n in range(len(line) + 1) if units(line[:n]) >= at["character"]), len(line))
        return before + column

    start, end = offset(change["range"]["start"]), offset(change["range"]["end"])
    return text[:start] + change["text"] + text[end:]


def changed(uri):
    """What is sent after a document was opened or changed."""
    version, text = documents[uri]
    items = diagnostics(text)
    counts["changes"] = counts.get("changes", 0) + 1
    is_first = counts["changes"] == 1
    if PULLS:
        return
    if MODE == "dies-at-open" or (MODE == "dies-at-change" and not is_first):
        sys.exit(3)
    if MODE == "hangs-at-open" or (MODE == "hangs-at-change" and not is_first):
        silent_forever()
    if MODE == "killed-at-change" and not is_first:
        os.kill(os.getpid(), signal.SIGKILL)
    if MODE == "never-publishes":
        return
    if MODE == "only-old-versions":
        return publish(uri, version - 1, items)
    if MODE == "old-version-first":
        publish(uri, version - 1, [{"range": {"start": position(0, ""), "end": position(0, "")}, "message": "stale"}])
    if MODE == "no-version":
        return publish(uri, None, items)
    if MODE == "two-steps":
        publish(uri, None, [])
    if MODE == "two-steps-versioned":
        publish(uri, version, [])
    if MODE == "other-uri":
        publish("file:///etc/passwd", None, items or [{"range": {"start": position(0, ""), "end": position(0, "")}, "message": "x"}])
        publish("untitled:1", None, items)
        publish("nonsense", None, items)
    if MODE == "other-file" and len(items) > 1:
        folder = uri.rsplit("/", 1)[0]
        other = {"range": {"start": position(0, ""), "end": position(0, "o")}, "severity": 1, "message": "broken by the change"}
        publish(f"{folder}/other.fake", None, [other])
    if MODE == "flood-of-diagnostics" and not is_first:
        span = {"start": position(0, ""), "end": position(0, "x")}
        items = items + [{"range": span, "severity": 1, "message": f"flood {n}"} for n in range(100_000)]
    if MODE == "flood-of-notifications":
        for n in range(20_000):
            send({"method": "window/logMessage", "params": {"type": 3, "message": "x" * 100}})
    if MODE == "flood-of-requests":
        for n in range(2_000):
            request("window/showMessageRequest", {"type": 1, "message": "which?", "actions": []})
    if MODE == "flood-of-files":
        for n in range(6_000):
            publish(f"file:///x/{n}", None, [])
    if MODE == "endless-flood":
        line = {"method": "window/logMessage", "params": {"type": 3, "message": "x" * 10_000}}
        while True:
            send(line)
    if MODE == "huge-positions":
        big = {"line": 2**31 - 1, "character": 2**31 - 1}
        items = [{**item, "range": {"start": big, "end": big}} for item in items]
    if MODE == "negative-positions":
        bad = {"line": -1, "character": -7}
        items = items + [{"range": {"start": bad, "end": bad}, "message": "negative"}]
    if MODE == "odd-diagnostics":
        items = items + [None, 7, "x", {}, {"message": "no range"}, {"range": {}, "message": "empty range"}]
        items[0]["message"] = {"kind": "markdown", "value": items[0]["message"]} if len(items) > 6 else "x"
    if MODE == "long-message":
        items = [{**item, "message": "long\n" * 100_000} for item in items]
    if MODE == "escape-sequences":
        items = [{**item, "message": "red \x1b[31m\x00 end"} for item in items]
    if MODE == "null-diagnostics":
        send({"method": "textDocument/publishDiagnostics", "params": {"uri": uri, "version": version, "diagnostics": None}})
    if MODE == "invalid-json":
        write(b"Content-Length: 7\r\n\r\n{\"a\": }")
        write(b"Content-Length: 0\r\n\r\n")
        write(b"Content-Length: 4\r\n\r\nnull")
    if MODE == "invalid-utf8":
        write(b"Content-Length: 4\r\n\r\n\"\xff\xfe\"")
    if MODE == "prints-to-stdout":
        print("checking the document …\n\nstill checking", flush=True)
    if MODE == "wrong-ids":
        for number in (999_999, -5, 2**63, "7", None, {"a": 1}):
            send({"id": number, "result": []})
    if MODE == "partial-frame":
        body = json.dumps({"method": "textDocument/publishDiagnostics", "params": {"uri": uri, "version": version, "diagnostics": items}}).encode()
        data = b"Content-Length: %d\r\n\r\n" % len(body) + body
        for n in range(0, len(data), 5):
            write(data[n : n + 5])
        return
    if MODE == "cut-frame":
        write(b"Content-Length: 5000\r\n\r\n{")
        silent_forever()
    if MODE == "cut-frame-and-exit":
        write(b"Content-Length: 5000\r\n\r\n{")
        sys.exit(0)
    if MODE == "huge-header":
        write(b"X: " + b"y" * 100_000)
        silent_forever()
    if MODE == "huge-body":
        write(b"Content-Length: 99999999999\r\n\r\n")
        silent_forever()
    if MODE == "closes-output":
        os.close(1)
        silent_forever()
    if MODE == "asks-for-an-edit":
        edit = {"range": {"start": position(0, ""), "end": position(0, "")}, "newText": "harm"}
        request("workspace/applyEdit", {"edit": {"changes": {uri: [edit]}}})
    if MODE == "loads-at-open" and is_first:
        progress("begin")
        publish(uri, version, [])
        progress("report")
        progress("end")
    if MODE == "takes-all-memory":
        take_memory(9 << 30)
    if MODE == "takes-much-memory":
        take_memory(2 << 30)
    if MODE == "deep-json":
        body = b"[" * 100_000
        write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    publish(uri, version, items)


def initialize(message):
    if MODE == "exits-at-once":
        sys.exit(1)
    if MODE == "never-answers":
        silent_forever()
    if MODE == "initialize-fails":
        return send({"id": message["id"], "error": {"code": -32603, "message": "no licence"}})
    if MODE == "initialize-null":
        return send({"id": message["id"], "result": None})
    if MODE == "initialize-garbage":
        write(b"\x00\xff garbage " * 5_000)
        silent_forever()
    if MODE == "dies-after-initialize":
        send({"id": message["id"], "result": {"capabilities": {}}})
        sys.exit(9)
    if MODE == "never-idle":
        progress("begin")
    sync = {"openClose": True, "change": 1 if MODE == "full-sync" else 2, "save": {"includeText": True}}
    capabilities = {"textDocumentSync": sync, "positionEncoding": ENCODING}
    for name in ("definition", "references", "hover", "documentSymbol", "rename", "documentFormatting", "codeAction"):
        capabilities[f"{name}Provider"] = True
    if MODE == "old-sync":
        capabilities["textDocumentSync"] = 1
    if PULLS and MODE != "pull-registered":
        capabilities["diagnosticProvider"] = {"interFileDependencies": False, "workspaceDiagnostics": False}
    send({"id": message["id"], "result": {"capabilities": capabilities}})


def pull(message):
    uri = message["params"]["textDocument"]["uri"]
    counts["pulls"] = counts.get("pulls", 0) + 1
    items = diagnostics(documents[uri][1])
    if MODE == "pull-loads-first" and counts["pulls"] == 1:
        progress("begin")
        send({"id": message["id"], "result": {"kind": "full", "items": []}})
        return progress("end")
    if MODE == "pull-with-progress":
        progress("begin")
        send({"id": message["id"], "result": {"kind": "full", "items": items}})
        return progress("end")
    if MODE == "pull-retried" and counts["pulls"] % 2 == 1:
        return send({"id": message["id"], "error": {"code": -32802, "message": "busy"}})
    if MODE == "pull-fails":
        send({"id": message["id"], "error": {"code": -32603, "message": "broken"}})
        return publish(uri, documents[uri][0], items)
    if MODE == "pull-null":
        send({"id": message["id"], "result": None})
        return publish(uri, documents[uri][0], items)
    if MODE == "pull-never-answers":
        return
    if MODE == "pull-dies":
        sys.exit(4)
    send({"id": message["id"], "result": {"kind": "full", "items": items}})


def word_at(uri, at):
    line = documents[uri][1].split("\n")[at["line"]]
    before = next((n for n in range(len(line) + 1) if units(line[:n]) >= at["character"]), len(line))
    start = len(line[:before]) - len(line[:before].split(" ")[-1])
    return line[start:].split(" ")[0]


def occurrences(uri, word):
    found = []
    for number, line in enumerate(documents[uri][1].split("\n")):
        at = line.find(word)
        while at >= 0:
            found.append({"start": position(number, line[:at]), "end": position(number, line[: at + len(word)])})
            at = line.find(word, at + 1)
    return found


def answer(method, params):
    uri = params["textDocument"]["uri"]
    if method == "textDocument/formatting":
        whole = {"start": position(0, ""), "end": {"line": 10_000, "character": 0}}
        return [{"range": whole, "newText": documents[uri][1].upper()}]
    if method == "textDocument/documentSymbol":
        span = {"start": position(0, ""), "end": position(0, "")}
        child = {"name": "inner", "kind": 6, "range": span, "selectionRange": span}
        return [{"name": "outer", "kind": 5, "range": span, "selectionRange": span, "children": [child]}]
    if method == "textDocument/codeAction":
        return [{"title": "Remove it", "kind": "quickfix"}]
    word = word_at(uri, params["position"])
    places = [{"uri": uri, "range": span} for span in occurrences(uri, word)]
    if method == "textDocument/definition":
        return places[:1]
    if method == "textDocument/references":
        return places
    if method == "textDocument/hover":
        return {"contents": {"kind": "markdown", "value": f"the word **{word}**"}}
    edits = [{"range": span, "newText": params["newName"]} for span in occurrences(uri, word)]
    other = uri.rsplit("/", 1)[0] + "/other.fake"
    start = {"start": position(0, ""), "end": position(0, "o")}
    if MODE == "overlapping-rename":
        edits = edits + edits
    if MODE == "rename-outside":
        other = "file:///etc/hostname"
    changes = {uri: edits, other: [{"range": start, "newText": params["newName"]}]}
    if MODE == "rename-deletes":
        return {"documentChanges": [{"kind": "delete", "uri": uri}]}
    return {"changes": changes}


QUESTIONS = {f"textDocument/{name}" for name in ("definition", "references", "hover", "documentSymbol", "rename", "formatting", "codeAction")}


def main():
    note_pid(os.getpid())
    if MODE == "ignores-term":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE == "starts-a-child":
        note_pid(subprocess.Popen(["sleep", "1000"], start_new_session=True).pid)
    while True:
        message = read()
        method, params = message.get("method"), message.get("params")
        if method == "initialize":
            initialize(message)
        elif method == "initialized":
            if MODE == "pull-registered":
                request("client/registerCapability", {"registrations": [{"id": "1", "method": "textDocument/diagnostic", "registerOptions": {"identifier": "x"}}]})
            if MODE == "asks-for-settings":
                request("workspace/configuration", {"items": [{"section": "fake.level"}, {"section": "nothing.there"}]})
            if MODE == "loads-first":
                progress("begin")
                progress("end")
        elif method == "textDocument/didOpen":
            document = params["textDocument"]
            documents[document["uri"]] = (document["version"], document["text"])
            if MODE != "asks-for-settings" or "settings" in counts:
                changed(document["uri"])
        elif method == "textDocument/didChange":
            uri, version = params["textDocument"]["uri"], params["textDocument"]["version"]
            text = documents[uri][1]
            for change in params["contentChanges"]:
                text = apply(text, change)
            documents[uri] = (version, text)
            changed(uri)
        elif method == "textDocument/didSave":
            if MODE == "dies-at-save":
                sys.exit(5)
        elif method == "textDocument/diagnostic":
            pull(message)
        elif method in QUESTIONS:
            send({"id": message["id"], "result": answer(method, params)})
        elif method is None and MODE == "asks-for-settings":
            counts["settings"] = message.get("result") == ["high", None]
            if counts["settings"]:
                for uri in documents:
                    changed(uri)
        elif method == "shutdown":
            if MODE == "hangs-at-shutdown":
                silent_forever()
            send({"id": message["id"], "result": None})
        elif method == "exit":
            sys.exit(0)
        elif "id" in message and method is not None:
            send({"id": message["id"], "error": {"code": -32601, "message": "unknown"}})


main()
