"""The same verbs for MCP clients, over standard input and output."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kernelsmith.errors import BackendUnavailable, SmithError


def serve(folder: Path) -> None:
    """Serve one run until the client hangs up.

    Raises:
        BackendUnavailable: The MCP package is not installed.
    """
    server = build(folder)
    server.run("stdio")


def build(folder: Path) -> Any:
    """The server with its tools, not yet running."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError as error:
        raise BackendUnavailable(
            "the MCP server needs the package 'mcp'; try: pip install 'kernelsmith[agent]'"
        ) from error
    import asyncio

    from kernelsmith.run import agency, feedback

    server = MCPServer(
        "kernelsmith",
        instructions=(
            "You write faster kernels for one task. Call ask to get briefs, write a whole source "
            "file for each, call tell with it, read the verdict, and ask again. status says where "
            "the run stands."
        ),
    )

    @contextmanager
    def one_line() -> Iterator[None]:
        """Tell a client what it did wrong, instead of a traceback."""
        try:
            yield
        except SmithError as error:
            raise ToolError(str(error)) from None

    @server.tool()
    async def ask(count: int = 1, agent: str = "mcp") -> list[dict[str, Any]]:
        """Claim up to `count` briefs: each has a number and the prompt to answer."""
        with one_line():
            orders = agency.ask(folder, count=count, agent=agent)
            return [{"number": each.number, "prompt": each.text} for each in orders]

    @server.tool()
    async def tell(replies: dict[str, str]) -> list[dict[str, Any]]:
        """Hand in sources by number of the brief, and hear what the judge says of each."""
        with one_line():
            numbered = {int(number): text for number, text in replies.items()}
            # Judging blocks for seconds, and has an event loop of its own.
            answers = await asyncio.to_thread(agency.tell, folder, numbered)
            return [feedback.as_json(each) for each in answers]

    @server.tool()
    async def status() -> dict[str, Any]:
        """Where the run stands: steps, verdicts, the best speed-up, briefs that wait."""
        with one_line():
            return feedback.status(folder)

    return server
