"""Finds an example for each module class of the document that no other example reaches.

Classes that no other class of the file constructs come first: most of the others are seen with them. For each, evidence is tried in the
order of its credibility: what was found before, calls in the project, factories, then constructors and inputs that are inferred.
"""

from __future__ import annotations

import ast
import os
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

import torch

from ...protocol import Alternative, ExampleRequest, ExampleRun, Known, Search, Traced
from ..confine import DeadlineReached, TooLong, within
from ..probing import Sight
from .abstract import is_abstract
from .adjusting import adjusted
from .annotations import input_shapes
from .choices import Node
from .constructing import constructions
from .doubts import asks_for_another_form, attempt, depends_on_choice, is_given, is_mismatch, is_one_mistake, is_strange, with_other_sizes
from .evidence import Candidate, Construction, InputShape, filled
from .factories import factories
from .inputs import Inputs
from .marks import Marks
from .missing import is_known, lacks_parts
from .trials import Bench, sources_first
from .usages import usages
from .users import usages_elsewhere

if TYPE_CHECKING:
    from ..run import Job

MOST_TRIES = 140  # for one class
MOST_TRIES_AFTER_EDIT = 24  # where an example ran before
MOST_CONSTRUCTIONS = 25  # tried until one can be built
MOST_CALLS = 8  # of a class in the project that are tried besides the one that was found
MOST_OTHERS = 4  # of them that the user may choose from
SHARE = 0.6  # of the time that is left, for one class
LEAST_SECONDS = 0.4  # for one class
LONGEST_RUN = 2.0  # seconds that an example which was found may run, past its mismatches


@dataclass
class Found:
    """An example for a class."""

    target: str
    expression: str
    evidence: str
    where: str = ""
    doubtful: bool = False
    exhausted: bool = False  # whether all other choices that there are were tried
    untried: bool = False  # it ran to its end in an earlier version of the text, and not yet in this one
    tried: int = 0


class Way(NamedTuple):
    """A way to build a class, and what the model is called with, where that is known."""

    construction: Construction
    arguments: Optional[str]


class Finder:
    """The search for the examples of a document that is loaded."""

    def __init__(self, job: "Job", names: Mapping[str, Any], search: Search) -> None:
        self.job = job
        self.names = names
        self.search = search
        self.tree = ast.parse(job.run.text.lstrip("\ufeff"), job.run.file)
        self.bench = Bench(job, names, time.perf_counter() + search.seconds)
        self.reached: Set[type] = set()  # classes whose `forward` ran to its end
        self.given: Set[str] = set()  # classes that have an example of their own
        self._lines = job.run.text.splitlines()
        self._evidence: Optional[List[Candidate]] = None
        self._nodes = {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)}
        self._known = {known.target: known for known in search.known}

    def examples(self) -> Iterator[Found]:
        """An example after the other, each to be run before the next one is asked for: `reached` then has what it reached."""
        for name in self._order():
            cls = self._class(name)
            if cls is None or cls in self.reached or name in self.given or is_abstract(cls, self.tree):
                continue
            if self.search.classes and name not in self.search.classes:
                continue
            if self.bench.is_over and name not in self._known:
                continue
            found = self._find(name, cls)
            if found is not None:
                yield found

    def others(self, found: Found) -> List[Alternative]:
        """Other calls of the class that the project has, as far as they run and there is time to see that."""
        known = self._known.get(found.target)
        if known is not None and known.expression == found.expression:
            return []  # Whoever knows it knows the others too.
        seen = {found.expression}
        running: List[Alternative] = []
        for candidate in self._candidates(found.target)[:MOST_CALLS]:
            arguments = _given(candidate)
            expression = "%s(%s)" % (filled(candidate.constructor, candidate.sizes), arguments)
            if not candidate.constructor or arguments is None or expression in seen or self.bench.is_over or len(running) == MOST_OTHERS:
                continue
            seen.add(expression)
            trial = self.bench.whole(expression)
            if trial.error is None and (self._class(found.target) in trial.classes or not trial.classes):
                running.append(Alternative(expression, candidate.evidence, candidate.where))
        return running

    # --- which classes ---

    def _class(self, name: str) -> Optional[type]:
        try:
            value = self.names[name]
        except KeyError:
            return None
        if isinstance(value, type) and issubclass(value, torch.nn.Module) and value.__name__ == name:
            return value
        return None

    def _order(self) -> List[str]:
        """Classes that no other one constructs first; those further down in the file before those above."""
        names = [name for name in self._nodes if self._class(name) is not None]
        used: Set[str] = set()
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef) and node.name in names:
                bases = {id(part) for base in node.bases for part in ast.walk(base)}
                used.update(
                    part.id for part in ast.walk(node) if isinstance(part, ast.Name) and part.id != node.name and id(part) not in bases
                )
        derived = {base.id for name in names for base in self._nodes[name].bases if isinstance(base, ast.Name)}
        names.reverse()
        names.sort(key=lambda name: (name in used, name in derived))
        return names

    # --- one class ---

    def _find(self, name: str, cls: type) -> Optional[Found]:
        known: Optional[Known] = self._known.get(name)
        if known is not None and (known.chosen or known.proven):  # Its run will tell whether it still fits.
            return Found(name, known.expression, known.evidence or "inferred", known.where, untried=True)
        return self._searched(name, cls, lambda: self._by_evidence(name, cls))

    def again(self, found: Found) -> Optional[Found]:
        """What to show for a class whose known example did not run to its end: the same, where the text is to blame, or another one."""
        cls, known = self._class(found.target), self._known[found.target]
        if cls is None or known.chosen:
            return replace(found, untried=False)
        return self._searched(found.target, cls, lambda: self._after_edit(known, cls))

    def _searched(self, name: str, cls: type, find: Callable[[], Found]) -> Optional[Found]:
        before = self.bench.tried
        left = self.bench.until - time.perf_counter()
        until, self.bench.until = self.bench.until, time.perf_counter() + max(LEAST_SECONDS, SHARE * left)
        try:
            found = find()
        finally:
            self.bench.until = until
        if found is not None:
            found.tried = self.bench.tried - before
        return found

    def _after_edit(self, known: Known, cls: type) -> Found:
        """The example that ran before, perhaps with other sizes or another form of input; if none runs, the edit is to blame."""
        found = Found(known.target, known.expression, known.evidence or "inferred", known.where)
        trial = attempt(self.bench, known.expression)
        if trial.error is None or is_given(known.evidence, known.where):
            return found
        if not asks_for_another_form(self.bench, trial):
            other = with_other_sizes(self.bench, known.expression, trial, ran_before=True)
            if other is not None and is_strange(other, known.expression):
                # It may fit by chance: no ground to change to it, and none to call the code wrong.
                return replace(found, doubtful=True)
            return found if other is None else replace(found, expression=other)
        another = self._by_evidence(known.target, cls, MOST_TRIES_AFTER_EDIT)
        blames_edit = another.doubtful and trial.found is not None and bool(trial.found.trail)
        return found if blames_edit else another

    def _by_evidence(self, name: str, cls: type, most: int = MOST_TRIES) -> Found:
        inputs = Inputs(self.bench, self._input_shapes(cls), most, lambda made, error: self._adjusted(made, error, cls))
        best: Optional[Tuple[int, Node]] = None
        given: Optional[Found] = None
        first = ""
        for way in self._ways(name, cls):
            if way.arguments is not None and not self.bench.is_over:
                expression = "%s(%s)" % (way.construction.text(), way.arguments)
                trial = self.bench.whole(expression)
                if trial.error is None and (cls in trial.classes or not trial.classes):
                    return Found(name, expression, way.construction.evidence, way.construction.where)
                found = Found(name, expression, way.construction.evidence, way.construction.where)
                counts = is_mismatch(trial) or lacks_parts(trial, self._nodes.get(name), self.job.run.file)
                if given is None and is_given(found.evidence, found.where) and counts:
                    given = found
                continue
            if given is not None:
                break
            first = first or way.construction.text()
            for construction, model in self._built(way.construction, cls):
                node = inputs.search(construction, model)
                if node is not None:
                    return self._found(name, inputs.completed(node), inputs)
                reached = inputs.best.trial.reached if inputs.best is not None and inputs.best.trial is not None else -1
                if inputs.best is not None and (best is None or reached > best[0]):
                    best = reached, inputs.best
                if not inputs.too_long:
                    break
            if self.bench.is_over:
                break
        if given is not None:  # The file's own call fails: no other one makes up for that.
            return given
        if best is not None:
            found = self._found(name, best[1], inputs)
            other = with_other_sizes(self.bench, found.expression, best[1].trial)
            if other is not None:
                return replace(found, expression=other)
            return replace(found, doubtful=True, exhausted=self._is_exhausted(found.expression))
        return Found(name, first or "%s()" % name, "inferred", doubtful=True)  # What cannot even be built is told of.

    def _is_exhausted(self, expression: str) -> bool:
        """Whether nothing that can be chosen has to do with what fails in the best example that was found."""
        trial = None if self.bench.is_over else attempt(self.bench, expression)
        return trial is not None and is_mismatch(trial) and not depends_on_choice(self.bench, expression, trial)

    def _found(self, name: str, node: Node, inputs: Inputs) -> Found:
        evidence, where = node.construction.evidence, node.construction.where
        if evidence == "inferred":
            said = inputs.said(node)
            if said is not None:
                evidence, where = "annotation", said.where
        return Found(name, node.expression, evidence, where)

    def _ways(self, name: str, cls: type) -> Iterator[Way]:
        """Ways to build a class, with what it is called with where that is known, the most credible first."""
        candidates = self._candidates(name)
        unclear = [candidate for candidate in candidates if candidate.constructor and not is_known(candidate, self.names)]
        candidates = [candidate for candidate in candidates if candidate not in unclear]
        for candidate in candidates:
            if candidate.constructor:
                yield Way(Construction(candidate.constructor, candidate.sizes, candidate.evidence, candidate.where), _given(candidate))
        for candidate in candidates:
            if candidate.constructor and candidate.arguments is not None:  # What it is called with did not fit.
                yield Way(Construction(candidate.constructor, candidate.sizes, candidate.evidence, candidate.where), None)
        inferred = constructions(cls, self.names, self.tree)
        for construction in inferred:
            for candidate in candidates:
                if not candidate.constructor:
                    yield Way(replace(construction, evidence=candidate.evidence, where=candidate.where), _given(candidate))
            yield Way(construction, None)
        for candidate in unclear:
            yield Way(Construction(candidate.constructor, candidate.sizes, candidate.evidence, candidate.where), _given(candidate))

    def _candidates(self, name: str) -> List[Candidate]:
        """What the project says of a class, the strongest first."""
        if self._evidence is None:
            classes = [known for known in self._nodes if self._class(known) is not None]
            self._evidence = usages(self.tree, classes)
            for path in self.search.users:
                text = self.job.finder.text_of(path) if os.path.exists(path) or path in self.job.finder.texts else ""
                self._evidence += usages_elsewhere(text, path, classes, self.tree, self.job.run.file)
            self._evidence += factories(self.tree, classes)
        return [candidate for candidate in self._evidence if candidate.target == name]

    def _built(self, construction: Construction, cls: type) -> Iterator[Tuple[Construction, Any]]:
        """The model that a construction gives; where it cannot be built, those of constructions that mend what failed."""
        left, seen = [construction], {construction.text()}
        for _ in range(MOST_CONSTRUCTIONS):
            if not left or self.bench.is_over:
                return
            made = left.pop(0)
            model, trial = self.bench.build(made.text())
            if trial.error is None:
                if callable(model):
                    yield made, model  # Asked for another one, it takes too long to run.
                left, trial.error = [], TooLong()
            others = [other for other in self._adjusted(made, trial.error, cls) if other.text() not in seen]
            seen.update(other.text() for other in others)
            left[:0] = others

    def _adjusted(self, construction: Construction, error: BaseException, cls: type) -> List[Construction]:
        return adjusted(construction, error, cls, self.names, self.tree)

    def _input_shapes(self, cls: type) -> Dict[str, InputShape]:
        for base in cls.__mro__:
            node = self._nodes.get(base.__name__)
            forward = (
                next((item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "forward"), None) if node else None
            )
            if forward is not None:
                return input_shapes(forward, self._lines, node, self.tree)
        return {}


def _given(candidate: Candidate) -> Optional[str]:
    return None if candidate.arguments is None else filled(candidate.arguments, candidate.sizes)


def find_examples(job: "Job", names: Dict[str, Any], search: Search, sights: List[Any]) -> bool:
    """Find and run examples for the classes that those that were run do not reach. What they saw is added to `sights` and to the trace.

    Returns whether that was done before the run's deadline; what was seen until then is in the trace.
    """
    try:
        _find_all(job, names, search, sights)
    except DeadlineReached:  # Nobody asked for these examples: that there is no time for all of them is no mistake of the file.
        for example in job.trace.examples[len(job.run.examples) :]:
            if not example.seconds:
                example.evidence, example.doubtful, example.error_kind = example.evidence or "inferred", True, "deadline"
        return False
    return True


def _find_all(job: "Job", names: Dict[str, Any], search: Search, sights: List[Any]) -> None:
    finder = Finder(job, names, search)
    told: List[Tuple[Found, ExampleRun]] = []
    finder.given = {request.target for request in job.run.examples}
    for _, _, calls, _ in sights:  # Where an example that was given fails, what it did not come to has no other one either.
        finder.reached.update(type(module) for module in calls.modules)
    for found in finder.examples():
        before = Marks(job.trace)
        if not job.trace.observations:
            _show_attempt(job, found, finder.bench)
            before.restore(job.trace)
        run = _run(job, found, names, finder.bench)
        if found.untried and (run.example.error is not None or job.calls.mismatches):
            other = finder.again(found)
            if other is not None and other.expression != found.expression:
                before.restore(job.trace)
                run = _run(job, other, names, finder.bench)
            elif other is not None:
                job.calls = run.calls
                _describe(run.example, other, run.calls)
            found = other or found
        told.append((found, run.example))
        if run.sight is not None:
            job.record(run.sight, [], run.number, run.first_layer)
            sights.append((run.code, run.sight, run.calls, run.first_layer))
            finder.reached.update(run.calls.called_classes())
            job.send(Traced(job.run.run_id, "partial", job.trace))
    for found, example in told:  # When all classes have one.
        example.others = finder.others(found)
    job.calls = job.next_calls()


class _Run(NamedTuple):
    """What became of one example."""

    example: ExampleRun
    number: int
    first_layer: int
    code: Any
    sight: Any  # None for an expression that does not compile
    calls: Any


def _run(job: "Job", found: Found, names: Dict[str, Any], bench: Bench) -> _Run:
    request = ExampleRequest(found.target, found.expression)
    code = job.compiled(request, sources_first(bench, found.where))
    example, index, first_layer = job.trace.examples[-1], len(job.trace.examples) - 1, len(job.trace.layers)
    job.calls = job.next_calls()
    # What is known before the end, which a deadline may keep it from reaching.
    example.evidence, example.where, example.doubtful = found.evidence, found.where, found.doubtful
    sight = None
    try:
        with within(LONGEST_RUN):
            sight = job.evaluate(index, request, code, names) if code is not None else None
    except TooLong:  # The other classes are to have examples too. It has no dims to be named by more such runs.
        sight = Sight(job.recorder.seen, job.calls.seen, {})
        job.trace.mismatches += job.calls.mismatches
        example.error, example.error_kind = "it takes too long to run it to its end", "exception"
    _describe(example, found, job.calls)
    return _Run(example, index, first_layer, code, sight, job.calls)


def _show_attempt(job: "Job", found: Found, bench: Bench) -> None:
    """Send what the attempt saw that led to an example, so that something shows before the example itself has run."""
    if bench.seen is None or found.untried:
        return
    job.trace.examples.append(
        ExampleRun(found.target, found.expression, evidence=found.evidence, where=found.where, doubtful=found.doubtful)
    )
    job.record(Sight(bench.seen, job.calls.seen, {}), [], len(job.trace.examples) - 1, len(job.trace.layers))
    job.send(Traced(job.run.run_id, "partial", job.trace))


def _describe(example: ExampleRun, found: Found, calls: Any) -> None:
    example.evidence, example.where, example.tried, example.doubtful = found.evidence, found.where, found.tried, found.doubtful
    if found.doubtful and found.exhausted and is_one_mistake(calls.mismatches, example.error):
        example.doubtful = False
