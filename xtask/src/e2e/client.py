"""Drives `helve mcp` with the official client; prints the results as JSON.

client.py session|client BINARY WORKSPACE FILE
"""
import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def answer(result):
    failed = getattr(result, "isError", None)
    if failed is None:
        failed = result.is_error
    return {"error": bool(failed), "text": "\n".join(getattr(part, "text", "") for part in result.content)}


async def read_files(client, protocol, file):
    tools = (await client.list_tools()).tools
    read = await client.call_tool("read", {"filePath": file})
    missing = await client.call_tool("read", {"filePath": "no-such-file.txt"})
    names = [tool.name for tool in tools]
    return {"protocol": str(protocol), "tools": names, "read": answer(read), "missing": answer(missing)}


async def main(client_kind, binary, workspace, file):
    server = StdioServerParameters(command=binary, args=["--dir", workspace, "mcp"], env=dict(os.environ), cwd=workspace)
    if client_kind == "client":
        from mcp import Client

        async with Client(server) as client:
            return await read_files(client, client.protocol_version, file)
    async with stdio_client(server) as (reader, writer), ClientSession(reader, writer) as session:
        initialized = await session.initialize()
        return await read_files(session, initialized.protocolVersion, file)


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
