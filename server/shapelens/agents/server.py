"""The Model Context Protocol: the only module that imports its library. One call at a time; a call that the client gives up ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from urllib.request import url2pathname

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from shapelens import __version__
from shapelens.agents.answers import Answer
from shapelens.agents.asked import answer, refusal
from shapelens.agents.session import AgentSession
from shapelens.agents.tools import INSTRUCTIONS, TOOLS
from shapelens.batch import Unavailable
from shapelens.commands import RefusedRequest
from shapelens.source.files import Unreadable

logger = logging.getLogger(__name__)

PROGRESS_SECONDS = 1.0  # between two words about a call that takes long
LONGEST_ANSWER = 5.0  # seconds for a client to name its folders
ROOTS = "roots"  # the key of the question for the client's folders


async def serve(folders: Sequence[Path], python: str | None, allow: Sequence[str]) -> None:
    """Serve one client over stdio until it goes away. folders: of the workspace; none: the current one."""
    session = AgentSession(folders or [Path.cwd()], python, allow, named_by_user=bool(folders))
    tools = _Tools(session)
    server: Server[Any] = Server(
        "shapelens",
        version=__version__,
        title="ShapeLens",
        instructions=INSTRUCTIONS,
        on_list_tools=tools.listed,
        on_call_tool=tools.called,
    )
    try:
        async with stdio_server() as (reading, writing):
            session.begin_early()
            await server.run(reading, writing, server.create_initialization_options())
    finally:
        await tools.end()
        await session.close()


class _Tools:
    def __init__(self, session: AgentSession) -> None:
        self._session = session
        self._turn = asyncio.Lock()
        self._calls: set[asyncio.Task[types.CallToolResult]] = set()
        self._knows_roots = False

    async def listed(self, context: Any, params: Any) -> types.ListToolsResult:
        """The tools."""
        unchanging = types.ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name, title=tool.title, description=tool.description, input_schema=tool.schema(), annotations=unchanging
                )
                for tool in TOOLS.values()
            ]
        )

    async def called(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult | types.InputRequiredResult:
        """The answer to a call. It is worked on by a task of its own, which ends in good order where the client gives it up."""
        if not self._knows_roots and _has_roots(context):
            if not context.session.can_send_request and params.input_responses is None:
                return types.InputRequiredResult(input_requests={ROOTS: types.ListRootsRequest()})
            await self._learn_roots(context, params)
        task = asyncio.create_task(self._answered(context, params))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            raise

    async def end(self) -> None:
        """End what is under way."""
        calls = list(self._calls)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    # --- one call ---

    async def _answered(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            return _error(f"there is no tool {params.name}; there are {', '.join(TOOLS)}")
        try:
            given = tool.read(params.arguments or {})
            async with self._turn:
                self._session.begin_call()
                telling = asyncio.create_task(self._tell(context))
                try:
                    return _result(await answer(self._session, tool.name, given))
                finally:
                    telling.cancel()
        except (RefusedRequest, Unreadable, Unavailable) as refused:
            return _error(refusal(refused))
        except Exception as fault:
            logger.exception("%s failed", tool.name)
            return _error(f"this is a fault of ShapeLens: {type(fault).__name__}: {fault}")

    async def _tell(self, context: Any) -> None:
        """Tell a client that wants to know what a long call does."""
        seconds = 0.0
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            seconds += PROGRESS_SECONDS
            await context.session.report_progress(seconds, None, self._session.doing.text())

    # --- the client's folders ---

    async def _learn_roots(self, context: Any, params: types.CallToolRequestParams) -> None:
        """The client's folders, once: in its answer to the first call, or, by an earlier version of the protocol, to a question."""
        self._knows_roots = True
        found: object = (params.input_responses or {}).get(ROOTS)
        if context.session.can_send_request:
            try:
                question = context.session.send_request(types.ListRootsRequest(), types.ListRootsResult)
                found = await asyncio.wait_for(question, LONGEST_ANSWER)
            except Exception as error:  # A client that says it has folders, and does not say which, is served without.
                logger.warning("the client does not name its folders: %s", error)
        if isinstance(found, types.ListRootsResult):
            urls = [urlparse(str(root.uri)) for root in found.roots]
            self._session.add([Path(url2pathname(url.path)) for url in urls if url.scheme == "file"])


def _has_roots(context: Any) -> bool:
    capabilities = context.session.client_capabilities
    return capabilities is not None and capabilities.roots is not None


def _result(found: Answer) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=found.text)], structured_content=found.data)


def _error(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)
