"""An MCP server that holds one thing."""
import json
import sys

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"resources": {}}, "serverInfo": {"name": "things", "version": "1"}}
    elif method == "resources/list":
        result = {"resources": [{"uri": "thing://1", "name": "thing", "mimeType": "text/plain"}]}
    elif method == "resources/templates/list":
        result = {"resourceTemplates": [{"uriTemplate": "thing://{number}", "name": "things"}]}
    else:
        result = {"contents": [{"uri": "thing://1", "mimeType": "text/plain", "text": "one thing"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
