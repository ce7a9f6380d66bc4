"""Drives `helve mcp` with the official client; prints the results as JSON.

client.py session|client BINARY WORKSPACE FILE
"""
import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

try:
    from mcp.types import ElicitResult
except ImportError:
    from mcp_types import ElicitResult


def answer(result):
    failed = getattr(result, "isError", None)
    if failed is None:
        failed = result.is_error
    return {"error": bool(failed), "text": "\n".join(getattr(part, "text", "") for part in result.content)}


forms = []


async def fill_form(context, params):
    """Answers the form of a question with its first choice."""
    schema = getattr(params, "requestedSchema", None) or params.requested_schema
    forms.append(params.message)
    return ElicitResult(action="accept", content={"choice": schema["properties"]["choice"]["enum"][0]})


async def try_tools(client, protocol, file):
    tools = (await client.list_tools()).tools
    read = await client.call_tool("read", {"filePath": file})
    missing = await client.call_tool("read", {"filePath": "no-such-file.txt"})
    options = [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}]
    question = {"question": "Which colour?", "header": "Colour", "options": options}
    asked = await client.call_tool("question", {"questions": [question]})
    names = [tool.name for tool in tools]
    return {
        "protocol": str(protocol),
        "tools": names,
        "read": answer(read),
        "missing": answer(missing),
        "question": answer(asked),
        "forms": forms,
    }


async def main(client_kind, binary, workspace, file):
    server = StdioServerParameters(command=binary, args=["--dir", workspace, "mcp"], env=dict(os.environ), cwd=workspace)
    if client_kind == "client":
        from mcp import Client

        async with Client(server, elicitation_callback=fill_form) as client:
            return await try_tools(client, client.protocol_version, file)
    async with stdio_client(server) as (reader, writer), ClientSession(
        reader, writer, elicitation_callback=fill_form
    ) as session:
        initialized = await session.initialize()
        return await try_tools(session, initialized.protocolVersion, file)


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
