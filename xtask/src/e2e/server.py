"""A server of the official Python package."""

from mcp.server.fastmcp import FastMCP

server = FastMCP("python")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


server.run()
