"""`shapelens mcp` as a coding agent has it: a process of its own, asked by the client of the protocol's own package."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import mcp_types as types
import psutil
import pytest
import pytest_asyncio
from mcp import Client, StdioServerParameters

from command_line.commands import RECIPE, ROOT, SHAPELENS, WRONG, run
from shapelens.agents import asked, start
from shapelens.agents.session import AgentSession
from shapelens.agents.tools import TOOLS
from shapelens.agents.what_if import edited
from shapelens.commands import RefusedRequest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CONV, WIDER = "nn.Conv2d(6, 16, 5)", "nn.Conv2d(6, 24, 5)"
HIDDEN, WIDER_HIDDEN = "nn.Linear(120, 84)", "nn.Linear(120, 90)"
SLOW = """\
import time

import torch
from torch import nn


# shapelens: Slow()(f32[B:2, 8])
class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        end = time.perf_counter() + 60
        while time.perf_counter() < end:
            x = x + 0
        return self.fc(x)
"""


def server(folder: Path, *arguments: str) -> StdioServerParameters:
    command = ["mcp", "--interpreter", sys.executable, *arguments]
    return StdioServerParameters(command=str(SHAPELENS), args=command, cwd=folder, env={"SHAPELENS_CACHE_DIR": ""})


class Agent:
    """A client, and what it was told of progress."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.told: list[str] = []

    async def ask(self, tool: str, **arguments: Any) -> types.CallToolResult:
        async def progress(seconds: float, total: float | None, message: str | None) -> None:
            self.told.append(message or "")

        return await self.client.call_tool(tool, arguments, progress_callback=progress)

    async def answer(self, tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
        result = await self.ask(tool, **arguments)
        assert not result.is_error, text_of(result)
        assert isinstance(result.structured_content, dict)
        return text_of(result), result.structured_content

    async def refusal(self, tool: str, **arguments: Any) -> str:
        result = await self.ask(tool, **arguments)
        text = text_of(result)
        assert result.is_error and len(text.splitlines()) == 1 and "Traceback" not in text
        return text


def text_of(result: types.CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, types.TextContent)
    return content.text


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("agent") / "project"
    folder.mkdir()
    shutil.copy(RECIPE, folder / "recipe.py")
    shutil.copy(WRONG, folder / "wrong.py")
    (folder / "half.py").write_text("from torch import nn\n\n\nclass Net(nn.Module:\n    pass\n")
    (folder / "slow.py").write_text(SLOW)
    # Nothing says what this one is called with.
    (folder / "guessed.py").write_text(RECIPE.read_text().replace("# shapelens: Net()(f32[B:1024, 3, 32, 32])\n", ""))
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def agent(project: Path) -> AsyncIterator[Agent]:
    # A task of its own enters and leaves it, as the client's library wants it.
    ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def live() -> None:
        async with Client(server(project)) as client:
            ready.set_result(client)
            await over.wait()

    task = asyncio.create_task(live())
    yield Agent(await ready)
    over.set()
    await task


# --- what it offers ---


async def test_each_tool_says_what_it_is_for(agent: Agent) -> None:
    tools = (await agent.client.list_tools()).tools
    assert [tool.name for tool in tools] == ["check", "shapes", "what_if", "fixes", "summary"]
    for tool in tools:
        assert tool.description and "Use it" in tool.description
        assert tool.annotations is not None and tool.annotations.read_only_hint
        assert tool.input_schema["additionalProperties"] is False
        assert all(each["description"] for each in tool.input_schema["properties"].values())


# --- check ---


@pytest.mark.core
async def test_check_finds_the_wrong_number(agent: Agent) -> None:
    text, data = await agent.answer("check", paths=["wrong.py"])
    assert text.splitlines() == [
        "wrong.py:15:30: error linear-in-features: fc1 gets 400 features (16·5·5, flattened on line 22) but in_features is 576",
        "    fix: Change in_features to 16 * 5 * 5",
        "1 file checked: 1 error",
    ]
    [finding] = data["files"][0]["findings"]
    assert (finding["line"], finding["column"], finding["code"], finding["certain"]) == (15, 30, "linear-in-features", True)
    assert finding["fixes"] == ["Change in_features to 16 * 5 * 5"] and data["ok"] is False


async def test_check_of_a_folder_counts_its_files_and_says_what_is_guessed(agent: Agent, project: Path) -> None:
    text, data = await agent.answer("check", paths=["recipe.py", "guessed.py"])
    assert data["ok"] is True and text.startswith("2 files checked: nothing is wrong")
    assert [file["input"] for file in data["files"]] == ["given", "found"]


async def test_check_of_a_text_that_is_not_on_disk(agent: Agent, project: Path) -> None:
    wrong = RECIPE.read_text().replace("16 * 5 * 5", "16 * 4 * 4")
    text, data = await agent.answer("check", text=wrong, file="new_model.py")
    assert "new_model.py:15:30: error linear-in-features" in text and not data["ok"]
    assert not (project / "new_model.py").exists()
    assert (await agent.answer("check", text="import torch\n\nx = torch.zeros(2, 3) @ torch.zeros(4, 5)\n"))[1]["ok"] is False


async def test_check_says_that_a_file_does_not_parse(agent: Agent) -> None:
    text, data = await agent.answer("check", paths=["half.py"])
    assert "half.py:4:20: error syntax: " in text and data["files"][0]["findings"][0]["code"] == "syntax"


async def test_check_of_chosen_codes(agent: Agent) -> None:
    assert (await agent.answer("check", paths=["wrong.py"], ignore=["linear-in-features"]))[1]["ok"]
    assert (await agent.answer("check", paths=["wrong.py"], select=["matmul"]))[1]["ok"]
    assert "there is no code matmull (did you mean matmul?)" in await agent.refusal("check", paths=["wrong.py"], select=["matmull"])


# --- shapes ---


async def test_shapes_stand_beside_the_lines(agent: Agent) -> None:
    text, data = await agent.answer("shapes", file="recipe.py", lines="20-22")
    assert text.splitlines() == [
        "20 │         x = self.pool(F.relu(self.conv1(x)))   → [B, 6, 14, 14]",
        "21 │         x = self.pool(F.relu(self.conv2(x)))   → [B, 16, 5, 5]",
        "22 │         x = torch.flatten(x, 1)                → [B, 400]",
    ]
    assert {(value["line"], value["named"][0]) for value in data["values"]} >= {(21, "[B, 16, 5, 5]"), (22, "[B, 400]")}
    assert data["examples"][0]["evidence"] == "directive"


async def test_shapes_of_lines_that_there_are_not(agent: Agent) -> None:
    assert await agent.refusal("shapes", file="recipe.py", lines="200-210") == "recipe.py has 26 lines"
    assert await agent.refusal("shapes", file="recipe.py", lines="b") == "`lines` are written like 10-40"
    assert "has no module class Nett; it has Net" in await agent.refusal("shapes", file="recipe.py", class_name="Nett")


# --- what_if ---


@pytest.mark.core
async def test_what_if_a_layer_were_wider(agent: Agent, project: Path) -> None:
    before = (project / "recipe.py").read_text()
    text, data = await agent.answer("what_if", file="recipe.py", edits=[{"old": CONV, "new": WIDER}])
    assert text.startswith("recipe.py with this edit (nothing was written): new: 1 error; 1 error in all\n")
    assert "new: recipe.py:15:30: error linear-in-features: fc1 gets 600 features" in text
    assert "22 │ x = torch.flatten(x, 1)   → [B, 600]   (was → [B, 400])" in text.splitlines()
    assert not data["ok"] and data["written"] is False and [finding["code"] for finding in data["new"]] == ["linear-in-features"]
    flattened = {"line": 22, "source": "x = torch.flatten(x, 1)", "before": "→ [B, 400]", "after": "→ [B, 600]", "edited": False}
    assert flattened in data["shapes"]
    assert data["model"]["parameters"] == {"before": 62006, "after": 63214}
    assert (project / "recipe.py").read_text() == before
    assert sorted(each.name for each in project.iterdir()) == ["guessed.py", "half.py", "recipe.py", "slow.py", "wrong.py"]


async def test_what_if_all_of_it_fits(agent: Agent) -> None:
    edits = [{"old": HIDDEN, "new": WIDER_HIDDEN}, {"old": "nn.Linear(84, 10)", "new": "nn.Linear(90, 10)"}]
    text, data = await agent.answer("what_if", file="recipe.py", edits=edits)
    assert "no finding comes or goes; it runs" in text and data["ok"] and not data["new"]
    assert "Net: parameters 62006 → 62792 (+786); a training step (AdamW) takes 68.08 MB → " in text
    after = data["model"]["training_step_bytes"]
    assert after["before"] < after["after"]
    assert "16 │ self.fc2 = nn.Linear(120, 90)   → [B, 90]   (was → [B, 84])" in text.splitlines()


async def test_what_if_the_mistake_were_mended(agent: Agent) -> None:
    edits = [{"old": "16 * 6 * 6", "new": "16 * 5 * 5"}]
    text, data = await agent.answer("what_if", file="wrong.py", edits=edits, memory=False)
    assert "gone: 1 error; it runs" in text and data["ok"] and data["model"] is None
    assert [finding["line"] for finding in data["gone"]] == [15]


async def test_what_if_holds_on_to_the_input_that_was_found(agent: Agent) -> None:
    text, data = await agent.answer("what_if", file="guessed.py", edits=[{"old": "16 * 5 * 5", "new": "401"}])
    before = (await agent.answer("shapes", file="guessed.py"))[1]["examples"][0]["expression"]
    assert [example["expression"] for example in data["example"]] == [before] and data["example"][0]["guessed"]
    assert [finding["code"] for finding in data["new"]] == ["linear-in-features"], text


async def test_what_if_there_were_a_new_file(agent: Agent, project: Path) -> None:
    text, data = await agent.answer("what_if", file="another.py", text=RECIPE.read_text())
    assert data["ok"] and data["model"]["parameters"] == {"before": None, "after": 62006} and "it runs" in text
    assert not (project / "another.py").exists()


async def test_what_if_an_edit_leaves_no_python(agent: Agent) -> None:
    text, data = await agent.answer("what_if", file="recipe.py", edits=[{"old": "def forward(self, x):", "new": "def forward(self, x:"}])
    assert [finding["code"] for finding in data["new"]] == ["syntax"] and not data["ok"]
    assert "parameters and memory are not known: " in text


async def test_a_second_call_is_warm_and_has_the_same_worker(agent: Agent, record_property: Callable[[str, object], None]) -> None:
    await agent.answer("what_if", file="recipe.py", edits=[{"old": CONV, "new": WIDER}])
    workers = _workers()
    began = time.perf_counter()
    await agent.answer("what_if", file="recipe.py", edits=[{"old": CONV, "new": "nn.Conv2d(6, 20, 5)"}])
    record_property("warm what_if, ms", round((time.perf_counter() - began) * 1000))
    assert len(workers) == 1 and _workers() == workers
    assert time.perf_counter() - began < 5


async def test_what_has_changed_on_disk_is_run_again(agent: Agent, project: Path) -> None:
    """A model whose layer stands in another file: an edit of that one, and a new module, are seen by the next call."""
    (project / "parts").mkdir()
    try:
        (project / "parts" / "head.py").write_text("from torch import nn\n\n\ndef head():\n    return nn.Linear(8, 4)\n")
        text = "from head import head\nfrom torch import nn\n\n\n# shapelens: Net()(f32[B:2, 8])\nclass Net(nn.Module):\n"
        text += "    def __init__(self):\n        super().__init__()\n        self.head = head()\n\n"
        text += "    def forward(self, x):\n        return self.head(x)\n"
        (project / "parts" / "net.py").write_text(text)
        assert "→ [B, 4]" in (await agent.answer("shapes", file="parts/net.py"))[0]
        (project / "parts" / "head.py").write_text("from torch import nn\n\n\ndef head():\n    return nn.Linear(8, 64)\n")
        assert "→ [B, 64]" in (await agent.answer("shapes", file="parts/net.py"))[0]
        edits = [{"old": "return self.head(x)", "new": "return self.head(x)[:, :6]"}]
        assert "→ [B, 6]   (was → [B, 64])" in (await agent.answer("what_if", file="parts/net.py", edits=edits))[0]
    finally:
        shutil.rmtree(project / "parts")


async def test_calls_take_turns(agent: Agent) -> None:
    ask = [agent.answer("what_if", file="recipe.py", edits=[{"old": "16, 5)", "new": f"{count}, 5)"}]) for count in (17, 18, 19)]
    answers = await asyncio.gather(*ask)
    assert [f"fc1 gets {count * 25} features" in text for count, (text, _) in zip((17, 18, 19), answers, strict=True)] == [True] * 3


def _workers() -> list[int]:
    """The worker's own processes: those that the servers of this process have started themselves."""
    servers = [each for each in psutil.Process().children() if "mcp" in each.cmdline()]
    return sorted(child.pid for each in servers for child in each.children() if "worker" in " ".join(child.cmdline()))


# --- fixes, summary ---


async def test_fixes_are_diffs_that_were_run(agent: Agent, project: Path) -> None:
    text, data = await agent.answer("fixes", file="wrong.py", line=15)
    [fix] = data["findings"][0]["fixes"]
    assert fix["title"] == "Change in_features to 16 * 5 * 5" and fix["diff"].startswith("--- wrong.py\n+++ wrong.py\n@@ ")
    assert "+        self.fc1 = nn.Linear(16 * 5 * 5, 120)\n" in fix["diff"] and fix["diff"].rstrip() in text
    assert "nothing is wrong at line 3; findings stand at 15" in (await agent.answer("fixes", file="wrong.py", line=3))[0]
    assert (await agent.answer("fixes", file="recipe.py"))[0] == "nothing is wrong in recipe.py"


async def test_a_summary_has_parameters_and_memory(agent: Agent) -> None:
    text, data = await agent.answer("summary", target="recipe.py::Net", sizes={"B": 2})
    assert data["parameters"] == 62006 and data["dims"] == {"B": 2} and data["guessed"] is None
    assert data["memory"]["training"]["peak"] > 0 and "Parameters: 62006" in text and "conv1 (Conv2d)" in text
    assert [module["name"] for module in data["modules"][0]["modules"]][:2] == ["conv1", "pool"]


async def test_a_summary_says_what_was_guessed(agent: Agent) -> None:
    text, data = await agent.answer("summary", target="guessed.py")
    assert data["guessed"] and f"Guessed: {data['guessed']}" in text
    assert "it has B" in await agent.refusal("summary", target="recipe.py", sizes={"Q": 4})
    assert "`optimizer` Adan is not known" in await agent.refusal("summary", target="recipe.py", optimizer="Adan")


# --- what cannot be done ---

WRONG_CALLS: dict[str, tuple[str, dict[str, Any], str]] = {
    "no such file": ("shapes", {"file": "nothing.py"}, "nothing.py: no such file"),
    "no such path": ("check", {"paths": ["nothing"]}, "nothing: no such file or folder"),
    "outside": ("check", {"paths": ["/etc/passwd"]}, "/etc/passwd lies outside of the workspace"),
    "outside by dots": ("shapes", {"file": "../other.py"}, "../other.py lies outside of the workspace"),
    "no arguments": ("check", {}, "check takes either `paths` or `text`"),
    "an argument too many": ("fixes", {"file": "a.py", "row": 3}, "fixes has no argument `row`; it has file, line"),
    "an argument too few": ("shapes", {}, "shapes needs the argument `file`"),
    "a wrong kind": ("fixes", {"file": "a.py", "line": "3"}, "the argument `line` of fixes is to be a whole number"),
    "no such text": ("what_if", {"file": "recipe.py", "edits": [{"old": "nix", "new": ""}]}, "`old` does not stand in recipe.py"),
    "text twice": ("what_if", {"file": "recipe.py", "edits": [{"old": "nn", "new": ""}]}, "in recipe.py; take more lines around it"),
    "edits and text": ("what_if", {"file": "recipe.py", "edits": [], "text": ""}, "what_if takes either `edits` or `text`"),
    "no such tool": ("lint", {}, "there is no tool lint; there are check, shapes"),
}


@pytest.mark.parametrize("case", WRONG_CALLS)
async def test_what_cannot_be_done_is_one_sentence(agent: Agent, case: str) -> None:
    tool, arguments, words = WRONG_CALLS[case]
    assert words in await agent.refusal(tool, **arguments)


async def test_a_link_out_of_the_workspace_is_refused(agent: Agent, project: Path) -> None:
    link = project.parent / "outside.py"
    link.write_text("x = 1\n")
    (project / "link.py").symlink_to(link)
    try:
        assert "link.py lies outside of the workspace" in await agent.refusal("shapes", file="link.py")
        session = AgentSession([project], sys.executable, [])
        assert not session.holds(project / "link.py") and session.holds(project / "recipe.py")
    finally:
        (project / "link.py").unlink()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_folders_that_the_client_names_belong_to_the_workspace(mode: str, project: Path, tmp_path: Path) -> None:
    async def roots(context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=project.as_uri(), name="project")])  # type: ignore[arg-type]

    async with Client(server(tmp_path), mode=mode, list_roots_callback=roots) as client:
        agent = Agent(client)
        assert (await agent.answer("check", paths=["wrong.py"], fixes=False))[1]["ok"] is False
        assert "lies outside of the workspace" in await agent.refusal("check", paths=["/etc/passwd"])


@pytest.mark.slow("a run is waited for")
async def test_a_call_that_is_given_up_ends_and_the_next_one_is_answered(agent: Agent) -> None:
    agent.told.clear()
    call = asyncio.create_task(agent.ask("shapes", file="slow.py"))
    for _ in range(300):
        if "running slow.py" in agent.told:
            break
        await asyncio.sleep(0.1)
    workers = _workers()
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    began = time.perf_counter()
    assert (await agent.answer("what_if", file="recipe.py", edits=[{"old": CONV, "new": WIDER}]))[1]["new"]
    assert time.perf_counter() - began < 8 and "running slow.py" in agent.told
    assert _workers() == workers


async def test_nothing_is_left_of_a_server_whose_client_goes(project: Path) -> None:
    async with Client(server(project)) as client:
        await Agent(client).answer("check", paths=["recipe.py"], fixes=False)
        ours = max((each for each in psutil.Process().children() if "mcp" in each.cmdline()), key=psutil.Process.create_time)
        processes = [ours, *ours.children(recursive=True)]
    assert len(processes) > 1
    _, alive = psutil.wait_procs(processes, timeout=10)
    assert not alive


# --- the page about it ---

PAGE = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")


async def test_the_answer_that_the_page_shows_is_given(agent: Agent) -> None:
    shown = PAGE.partition("## What an answer looks like")[2].split("```")[1].strip("\n")
    text, _ = await agent.answer("what_if", file="recipe.py", edits=[{"old": CONV, "new": WIDER}])
    assert text == shown.replace("fixtures/recipe/", "")


def test_the_hook_of_the_page_hands_errors_to_the_agent(project: Path, tmp_path: Path) -> None:
    script = tmp_path / "check_shapes.py"
    script.write_text(PAGE.partition("```python\n")[2].partition("```")[0])
    environment = {
        **os.environ,
        "PATH": f"{SHAPELENS.parent}{os.pathsep}{os.environ['PATH']}",
        "SHAPELENS_CACHE_DIR": str(tmp_path / "cache"),
    }
    for name, code in (("wrong.py", 2), ("recipe.py", 0), ("notes.txt", 0)):
        edit = json.dumps({"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_input": {"file_path": str(project / name)}})
        done = subprocess.run([sys.executable, script], input=edit, cwd=project, env=environment, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert ("error linear-in-features: fc1 gets 400 features" in done.stderr) == (code == 2)


def test_the_configurations_of_the_page_parse() -> None:
    blocks = PAGE.split("```json\n")[1:]
    assert len([json.loads(block.partition("```")[0]) for block in blocks]) == 4
    [settings] = [tomllib.loads(block.partition("```")[0]) for block in PAGE.split("```toml\n")[1:]]
    assert settings["mcp_servers"]["shapelens"]["args"] == ["mcp"]


# --- without a server ---


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    monkeypatch.delitem(sys.modules, "shapelens.agents.server", raising=False)
    done = run("mcp")
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.startswith("shapelens: ") and "pip install 'mcp>=2,<3'" in done.stderr and len(done.stderr.splitlines()) == 1


def test_an_older_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "1.28.0")
    done = run("mcp")
    assert done.returncode == 2 and "version 2" in done.stderr and "there is mcp 1.28.0" in done.stderr


def test_a_folder_that_is_none_is_refused() -> None:
    with pytest.raises(RefusedRequest, match="no such folder"):
        start.run([Path("/no/such/folder")], None, [])


def test_edits_are_made_one_after_the_other() -> None:
    edits = [{"old": "a", "new": "b"}, {"old": "bb", "new": "c"}]
    assert edited("x.py", "ab", edits) == "c"
    with pytest.raises(RefusedRequest, match=r"edit 2: its `old` does not stand in x\.py"):
        edited("x.py", "a", [edits[0], edits[1]])
    with pytest.raises(RefusedRequest, match="`old` is empty"):
        edited("x.py", "a", [{"old": "", "new": "b"}])


async def test_an_answer_tells_no_more_findings_than_a_model_can_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(asked, "MOST_FINDINGS", 2)
    lines = "".join(f"x{number} = torch.zeros(2, 3) @ torch.zeros({number}, 5)\n" for number in range(4, 8))
    (tmp_path / "many.py").write_text(f"import torch\n\n{lines}")
    session = AgentSession([tmp_path], sys.executable, [])
    try:
        found = await asked.answer(session, "check", {"paths": ["many.py"], "fixes": False})
    finally:
        await session.close()
    assert [line.partition(" ")[0] for line in found.text.splitlines()[:2]] == ["many.py:3:6:", "many.py:4:6:"]
    assert found.text.splitlines()[2:] == ["… and 2 more: narrow `paths`, or `select` codes", "1 file checked: 4 errors"]
    assert found.data["left_out"] == 2 and len(found.data["files"][0]["findings"]) == 2


def test_schemas_are_small_enough_for_a_model_to_read() -> None:
    assert sum(len(tool.description) + len(str(tool.schema())) for tool in TOOLS.values()) < 8000
