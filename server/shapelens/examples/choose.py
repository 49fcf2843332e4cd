"""The examples that a file is run with, and what is wrong with those that it is not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from shapelens.examples import expression as expressions
from shapelens.examples.settings import Settings
from shapelens.protocol import ExampleRequest
from shapelens.source.comments import Directive
from shapelens.source.module import Module, ModuleClass
from shapelens.source.positions import Span

_TOP = Span(1, 0, 1, 0)
_MODELS = ("Module", "Model", "Network", "Net", "Layer", "Block", "Encoder", "Decoder", "Head", "Backbone")  # what names of bases end with
_MADE = re.compile(r"\bself\.\w+ *= *((?:torch\.)?nn\.[A-Z]|\w+)")  # what an object of a class makes for itself


@dataclass(frozen=True)
class Example:
    """An expression to run. evidence: "directive", "settings" or "command line"; where says it more closely ("line 12")."""

    target: str  # the qualified name of the class or function that it belongs to; "" if the file has none
    expression: str
    evidence: str
    where: str

    @property
    def request(self) -> ExampleRequest:
        """The example as a worker is asked to run it."""
        return ExampleRequest(self.target, self.expression)


@dataclass(frozen=True)
class ExampleProblem:
    """An example that cannot be run, in plain words."""

    span: Span  # in the file; its first character for one that does not come from the file
    message: str
    evidence: str = "directive"


@dataclass
class Choice:
    """The examples to run, in order, and the problems of the others."""

    examples: list[Example] = field(default_factory=list)
    problems: list[ExampleProblem] = field(default_factory=list)

    @property
    def requests(self) -> list[ExampleRequest]:
        """The examples as a worker is asked to run them."""
        return [example.request for example in self.examples]


def choose(module: Module, path: str, settings: Settings, extra: Sequence[str] = ()) -> Choice:
    """The examples of a file: directives in the order of the text, then those of the settings for `path` (absolute).

    `extra` are expressions of the command line; if there are any, they are the only ones. Nothing is raised for what a user wrote.
    """
    choice = Choice()
    if extra:
        for text in extra:
            _add(choice, module, text, "command line", "--example")
        return choice
    for directive in sorted(module.directives, key=lambda item: item.target is None):
        _add_directive(choice, module, directive)
    for text in settings.examples_for(path):
        _add(choice, module, text, "settings", settings.examples_from)
    return choice


def without_example(module: Module, choice: Choice) -> list[str]:
    """The classes that no example belongs to, by qualified name: modules, and classes that may be modules and have a `forward` or layers.

    One whose directive is wrong does not lack one: it is about to be mended.
    """
    known = {example.target for example in choice.examples} | {directive.target for directive in module.directives}
    classes = [*module.classes, *called_as_models(module)]
    return [cls.qualname for cls in classes if cls.qualname not in known and cls.name not in known]


def called_as_models(module: Module) -> list[ModuleClass]:
    """Those of the classes that may be modules which have a `forward` or layers of torch, inherit from another one that has, or from one
    that is called a model: `class Unet(SegmentationModel)`.
    """
    found: list[ModuleClass] = []
    names = {cls.name for cls in module.classes}
    for cls in module.maybe_modules:  # A base comes before what derives from it.
        made = _MADE.findall(module.lines.text_of(cls.span)) if "forward" not in cls.methods else ()
        makes_layers = any(each.startswith(("nn.", "torch.nn.")) or each in names for each in made)
        is_called_so = "__init__" in cls.methods and any(base.endswith(_MODELS) for base in cls.bases)
        if "forward" in cls.methods or makes_layers or not names.isdisjoint(cls.bases) or is_called_so:
            found.append(cls)
            names |= {cls.name, cls.qualname}
    return found


def _add_directive(choice: Choice, module: Module, directive: Directive) -> None:
    problem = expressions.problem(directive.expression)
    if problem is None:
        target = directive.target or _function(module, directive) or _target(module, directive.expression)
        _append(choice, Example(target, directive.expression, "directive", f"line {directive.span.line}"))
        return
    span = directive.span
    if directive.expression.strip():
        start, last = directive.position(problem.column), directive.position(max(problem.end_column - 1, problem.column))
        span = Span(start.line, start.column, last.line, last.column + 1)
    choice.problems.append(ExampleProblem(span, problem.message))


def _add(choice: Choice, module: Module, text: str, evidence: str, where: str) -> None:
    message = expressions.check(text)
    if message is None:
        _append(choice, Example(_target(module, text), text.strip(), evidence, where))
    else:
        choice.problems.append(ExampleProblem(_TOP, f"example {text!r} of the {evidence}: {message}", evidence))


def _append(choice: Choice, example: Example) -> None:
    if not any(known.target == example.target and known.expression == example.expression for known in choice.examples):
        choice.examples.append(example)


def _function(module: Module, directive: Directive) -> str | None:
    """The function that a directive calls which stands directly above it; the call of what a function gives is an example of a class."""
    function = module.function_below(directive.span.end_line)
    return function.name if function is not None and expressions.called(directive.expression) == function.name else None


def _target(module: Module, expression: str) -> str:
    """The first class of the file that the expression names, else the file's first one."""
    for name in expressions.names(expression):
        cls = module.class_named(name)
        if cls is not None:
            return cls.qualname
    known = module.classes or module.maybe_modules
    return known[0].qualname if known else ""
