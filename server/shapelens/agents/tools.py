"""The tools, as models are told of them: when to use each, and what it gives."""

from __future__ import annotations

from shapelens.agents.arguments import EDITS, NUMBER, SIZES, SWITCH, TEXT, TEXTS, Tool, ToolArgument

INSTRUCTIONS = (
    "ShapeLens runs PyTorch code on torch's meta device (no data, no GPU, no weights) and tells the shape of every tensor, and what does"
    " not fit. Ask it instead of working shapes out by hand: `what_if` before you edit a model, `check` after an edit, `shapes` to read"
    " unknown code."
)

_FILE = ToolArgument("file", TEXT, "A Python file of the workspace: a path from its folder, or an absolute one.", is_required=True)

CHECK = Tool(
    "check",
    "Check shapes",
    "Finds mistakes in PyTorch code without training it: sizes, dtypes, dims and devices that do not fit, wrong arguments of layers and"
    " calls, what backward() would refuse, checkpoints that do not fit, silent broadcasts. Use it after each edit of a model or a training"
    " script, instead of running the script. Each finding has a place, a code, a message in torch's terms, the titles of fixes that were"
    " run and work (`fixes` gives them as diffs), and `certain`: false where it rests on an input that ShapeLens guessed.",
    (
        ToolArgument("paths", TEXTS, "Files and folders of the workspace."),
        ToolArgument("text", TEXT, "Source text that is not on disk, in place of `paths`: it is checked, and never written."),
        ToolArgument("file", TEXT, "With `text`: the file that the text is meant for, which decides what its imports are."),
        ToolArgument("select", TEXTS, "Only findings with these codes."),
        ToolArgument("ignore", TEXTS, "No findings with these codes."),
        ToolArgument("fixes", SWITCH, "Whether fixes are tried, up to 30 s a file. Default: where a single file is checked."),
    ),
)

SHAPES = Tool(
    "shapes",
    "Shapes beside the source",
    "Shows source lines with the shape of each tensor beside them, as `x = self.conv(x)  → [B, 16, 28, 28]`, from a real run on the meta"
    " device. Use it to read a model that you do not know, or before you write code that takes its outputs. Dims have names where they may"
    " differ (B, T). Mistakes stand below their lines.",
    (
        _FILE,
        ToolArgument("lines", TEXT, "The lines to show, as `10-40`; all of the file is run anyway. Default: all."),
        ToolArgument("class_name", TEXT, "Only the example input of this class is run."),
    ),
)

WHAT_IF = Tool(
    "what_if",
    "What an edit would do",
    "Tells what an edit of a PyTorch file would do, without writing anything: which findings come and go, which shapes change from the edit"
    " on, and how parameters and the memory of a training step change. Use it before you edit sizes, layers, reshapes or a forward: it"
    " takes tenths of a second to a few seconds. Give `edits` (each `old` stands in the file exactly once) or the whole new `text`.",
    (
        _FILE,
        ToolArgument("edits", EDITS, "Edits of the file as it is on disk, made one after the other."),
        ToolArgument("text", TEXT, "The whole text that the file would have, in place of `edits`. The file need not exist yet."),
        ToolArgument("class_name", TEXT, "The model whose parameters and memory are compared. Default: the one that the file ends with."),
        ToolArgument("memory", SWITCH, "Whether parameters and memory are compared. Default: yes."),
    ),
)

FIXES = Tool(
    "fixes",
    "Fixes as diffs",
    "Gives the fixes of what is wrong at a line, each as a unified diff. Each was run before: its finding goes and no new one comes."
    " Use it after `check` has found an error, and apply the first diff that says what the author meant.",
    (_FILE, ToolArgument("line", NUMBER, "The line of the finding, from 1. Default: all findings of the file.")),
)

SUMMARY = Tool(
    "summary",
    "Model summary",
    "Gives a model as a table: its modules with output shapes, parameters and FLOPs, and what a training step takes of memory. Use it to"
    " compare sizes of models or to see whether one fits a GPU, instead of building it. Sizes that nobody gave are called guessed.",
    (
        ToolArgument("target", TEXT, "`FILE::Class`, or a file: then the class that it ends with.", is_required=True),
        ToolArgument("example", TEXT, "How to build and call the model: `Net(10)(f32[B:8, 3, 32, 32])`. Default: it is found."),
        ToolArgument("sizes", SIZES, 'Other sizes of named dims: `{"B": 64}`.'),
        ToolArgument("optimizer", TEXT, "SGD, momentum, Adam, AdamW, Adafactor, Adam8bit. Default: the program's, else AdamW."),
        ToolArgument("depth", NUMBER, "How many levels of modules are listed. Default: 3."),
    ),
)

TOOLS = {tool.name: tool for tool in (CHECK, SHAPES, WHAT_IF, FIXES, SUMMARY)}
