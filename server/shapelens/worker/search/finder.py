"""Finds an example for each module class of the document that no other example reaches, and tells of what it finds in events.

Classes that no other class of the file constructs come first: most of the others are seen with them. For each, evidence is tried in the
order of its credibility: what was found before, calls in the project, factories, then constructors and inputs that are inferred.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Callable, Dict, Generator, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

import torch

from ...protocol import Alternative, FileSpan, Known, Mismatch, Search
from ...python_sources import DOCUMENTATION
from ...stated.syntax_trees import expression_of
from ..calls.module_calls import Mistake
from ..evaluation.expression import package_of
from ..sandbox.limits import TooLong
from ..sandbox.originals import time
from .adjusting.adjustments import adjusted, with_few_layers
from .candidates.abstract_classes import is_abstract
from .candidates.build_plans import build_plans
from .candidates.name_priors import prior_of
from .events import AlternativesFound, Attempted, ClassBegun, EditSuspected, Event, ExampleFound, ExampleKept, FoundExample
from .evidence import BuildPlan, Candidate, InputShape, with_sizes
from .inputs.choices import ChoiceNode, node_of
from .inputs.input_search import InputSearch
from .text.annotations import input_shapes
from .trials.certainty import certain_mistakes, is_among, suspected_mistake
from .trials.doubtful_examples import (
    asks_for_another_form,
    attempt,
    avoids_failure,
    cannot_be_built,
    constructor_of,
    is_far_fetched,
    is_mismatch,
    places_of,
    runs_with_other_options,
    runs_with_other_sizes,
    with_other_options,
)
from .trials.other_examples import Said
from .trials.trial import Trial, TrialRunner
from .trials.unavailable import can_be_built, is_known, lacks_parts
from .usages.documented import documented_usages
from .usages.factories import factories
from .usages.importing_files import usages_elsewhere
from .usages.instantiated import instantiated
from .usages.project_settings import Current
from .usages.project_usages import usages

MOST_TRIES = 140  # for one class
MOST_TRIES_AFTER_EDIT = 24  # where an example ran before
MOST_CONSTRUCTIONS = 25  # tried until one can be built
MOST_CALLS = 8  # of a class in the project that are tried besides the one that was found
MOST_OTHERS = 4  # of them that the user may choose from
EARLY = 0.2  # seconds after which what comes furthest shows while the search goes on
SHARE = 0.6  # of the time that is left, for one class
LEAST_SECONDS = 0.4  # for one class
BRIEF_SECONDS = 0.15  # for one class that comes after the time is up: most need no more
EXTRA_SECONDS = 1.0  # for all of those
MOST_MISTAKES = 3  # that no example of a class avoids, which the search goes past


class WayToBuild(NamedTuple):
    """A way to build a class, and what the model is called with, where that is known."""

    plan: BuildPlan
    arguments: Optional[str]
    call: Optional[FileSpan] = None  # the call in the project that says both


Searching = Generator[Event, None, FoundExample]  # a part of the search: its events, and the example that it ends with


class Finder:
    """The search for the examples of a document that is loaded."""

    def __init__(
        self,
        runner: TrialRunner,
        names: Mapping[str, Any],
        file: str,
        text: str,
        search: Search,
        text_of: Callable[[str], str],
        kind: type = torch.nn.Module,
    ) -> None:
        """text_of: the text of another file, by its path; "" where there is none; kind: what the classes derive from."""
        self.runner = runner
        self.names = names
        self.search = search
        self.reached: Set[type] = set()  # classes whose `forward` ran to its end
        self.given: Set[str] = set()  # classes that have an example of their own
        self.shows = False  # whether there is something to see already: then attempts need not be shown
        self._file, self._text, self._text_of, self._kind = file, text, text_of, kind
        self._stays = True  # whether the example that ran last does
        self._took_too_long = False
        self._shallow: Optional[FoundExample] = None  # with few layers, of the class that was searched for last
        self._shows_at = time.perf_counter() + EARLY
        self._lines = text.splitlines()
        self._known = {known.target: known for known in search.known}

    @cached_property
    def tree(self) -> ast.Module:
        """The document's text, parsed."""
        return ast.parse(self._text.lstrip("\ufeff"), self._file)

    @cached_property
    def _nodes(self) -> Dict[str, ast.ClassDef]:
        return {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)}

    def events(self) -> Iterator[Event]:
        """Yields the events of the search, class by class. Run each `ExampleFound`, and call `ran`, before asking for the next event."""
        wanted = self.search.classes
        all_known = bool(wanted) and all(name in self._known and _is_settled(self._known[name]) for name in wanted)
        examples: List[FoundExample] = []
        for name in wanted if all_known else self._order():
            cls = self._class(name)
            if cls is None or cls in self.reached or name in self.given or (wanted and name not in wanted):
                continue
            if not all_known and is_abstract(cls, self.tree):
                continue
            if self.runner.clock() > self.runner.until + EXTRA_SECONDS and name not in self._known:
                continue
            yield ClassBegun(name)
            examples.append((yield from self._example(name, cls)))
        for example in examples:  # When all classes have one.
            yield AlternativesFound(example.target, self._alternatives(example))

    def ran(self, classes: Iterable[type], stays: bool, took_too_long: bool = False) -> None:
        """The last `ExampleFound` was run: the classes whose `forward` it ran to the end, and whether it stays, or another one may fit."""
        self.reached.update(classes)
        self.shows, self._stays, self._took_too_long = self.shows or stays, stays, took_too_long

    def _example(self, name: str, cls: type) -> Searching:
        known = self._former_again(self._known.get(name))
        if known is None or not _is_settled(known):
            found = yield from self._searched(name, self._past_mistakes(name, cls))
            yield ExampleFound(found)
            if self._stays:
                return found
            other = self._shallow
            if not self._took_too_long or other is None:
                other = yield from self._searched(name, self._past_mistakes(name, cls, is_deep=True))
            yield ExampleFound(other, instead=True)
            return other
        found = _of_known(known)
        yield ExampleFound(replace(found, untried=True))  # Its run tells whether it still fits.
        if self._stays:
            return found
        other = found if known.chosen else (yield from self._searched(name, self._after_edit(known, cls)))
        yield ExampleKept(other) if other.expression == found.expression else ExampleFound(other, instead=True)
        return other

    def _former_again(self, known: Optional[Known]) -> Optional[Known]:
        """The example that was known before this one, where it runs again: a search would find it first, as one has."""
        former = known.former if known is not None and not known.chosen else None
        if known is None or former is None or attempt(self.runner, former.expression).error is not None:
            return known
        return Known(known.target, former.expression, former.evidence, former.where, proven=True)

    def _alternatives(self, found: FoundExample) -> List[Alternative]:
        """Other calls of the class that the project has, as far as they run and there is time to see that."""
        known = self._known.get(found.target)
        if known is not None and known.expression == found.expression:
            return []  # Whoever knows it knows the others too.
        seen = {found.expression}
        running: List[Alternative] = []
        for candidate in self._candidates(found.target)[:MOST_CALLS]:
            arguments = _given(candidate)
            expression = "%s(%s)" % (with_sizes(candidate.constructor, candidate.sizes), arguments)
            if not candidate.constructor or arguments is None or expression in seen or self.runner.is_over or len(running) == MOST_OTHERS:
                continue
            seen.add(expression)
            trial = self.runner.whole(expression)
            if trial.error is None and (self._class(found.target) in trial.classes or not trial.classes):
                running.append(Alternative(expression, candidate.evidence, candidate.where))
        return running

    # --- which classes ---

    def _class(self, name: str) -> Optional[type]:
        try:
            value = self.names[name]
        except KeyError:
            return None
        if isinstance(value, type) and issubclass(value, self._kind) and value.__name__ == name:
            return value
        return None

    def _order(self) -> List[str]:
        """Classes of which nothing is shown first, of these such that the project itself builds and calls, then such that no other one
        constructs, those further down in the file before: what a guess would show of a class, the project's own use may show.
        """
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
        called = {each.target for each in self._all_candidates if each.constructor and each.arguments is not None}
        names.sort(key=lambda name: (name in self.search.later, name not in called, name in used, name in derived))
        return names

    # --- one class ---

    def _searched(self, target: str, search: Searching) -> Searching:
        """A part of the search in its share of the time that is left."""
        self.runner.target, self._shallow = target, None
        before = self.runner.tried
        left = self.runner.until - self.runner.clock()
        least = LEAST_SECONDS if left > 0 else BRIEF_SECONDS
        until, self.runner.until = self.runner.until, self.runner.clock() + max(least, SHARE * left)
        try:
            found = yield from search
        finally:
            self.runner.until = until
        found.tried = self.runner.tried - before
        return found

    def _after_edit(self, known: Known, cls: type) -> Searching:
        """The example that ran before, perhaps with other sizes or another form of input; if none runs, the edit is to blame."""
        found = _of_known(known)
        trial = attempt(self.runner, known.expression)
        if trial.error is None or known.call is not None:
            return found
        is_ours = _is_built_by_project(found)
        own = constructor_of(known.expression) if is_ours else ""
        if own and self.runner.build(own)[1].error is not None:
            return self._unbuilt(found, cls)
        places = places_of(self.runner, trial) if is_mismatch(trial) else []
        if not asks_for_another_form(self.runner, trial):
            other = runs_with_other_sizes(self.runner, known.expression, trial, ran_before=True, keeps_constructor=is_ours)
            if other is not None and is_far_fetched(other, known.expression):
                # It may fit by chance: no ground to change to it, and none to call the code wrong.
                return replace(found, doubtful=True)
            avoids = other is not None and avoids_failure(self.runner, other, places)
            if other is None or not avoids:
                return found
            # What the project says of its use is something else now.
            said = ("inferred", "") if found.evidence == "usage" else (found.evidence, found.where)
            return replace(found, expression=other, evidence=said[0], where=said[1])
        if is_mismatch(trial):
            yield EditSuspected()
        # That the file's own way to build it still fits something is what matters; that there are others does not.
        own_way = WayToBuild(BuildPlan(own, {}, known.evidence, known.where), None)
        ways = [own_way] if own and is_mismatch(trial) else self._ways(known.target, cls)
        another = yield from self._by_evidence(known.target, cls, ways, MOST_TRIES_AFTER_EDIT)
        if another.doubtful:
            return found if trial.found is not None and trial.found.trail else another
        return another if avoids_failure(self.runner, another.expression, places) else found

    def _unbuilt(self, found: FoundExample, cls: type) -> FoundExample:
        """The example to show for a class that the project builds and that cannot be built any more: what the model is called with does not
        come into play, and the way to build it is the one that a search from the start ends with.
        """
        way = next(self._ways(found.target, cls), None)
        if way is None or self.runner.build(way.plan.text())[1].error is None:
            return found
        return FoundExample(found.target, way.plan.text(), way.plan.evidence, way.plan.where, way.call)

    def _past_mistakes(self, name: str, cls: type, *, is_deep: bool = False) -> Searching:
        """By evidence. What no example avoids is gone past, so that the rest of the code tells which example fits."""
        passed: Dict[Mistake, Mismatch] = {}
        try:
            for _ in range(MOST_MISTAKES):
                found = yield from self._by_evidence(name, cls, self._ways(name, cls), is_deep=is_deep)
                if not found.doubtful:
                    break
                is_over, found.mistakes = self.runner.is_over, self.mistakes(found)
                if is_over or found.mistakes.keys() <= passed.keys():
                    break
                passed.update(found.mistakes)
                self.runner.passes = partial(is_among, passed)
            if found.doubtful and not self.runner.is_over:
                found = (yield from self._past_suspect(name, cls, found, passed, is_deep=is_deep)) or found
            return found
        finally:
            self.runner.passes = None

    def _past_suspect(
        self, name: str, cls: type, found: FoundExample, passed: Dict[Mistake, Mismatch], *, is_deep: bool
    ) -> Generator[Event, None, Optional[FoundExample]]:
        """The example that runs to its end past the first mismatch of one in which more fails; None where there is none, so that it is as
        likely that what fails first is right and the example wrong."""
        suspect, following = suspected_mistake(self.runner, found.expression, _said_of(found))
        if not suspect or suspect.keys() <= passed.keys():
            return None
        self.runner.passes = partial(is_among, {**passed, **suspect, **following})
        other = yield from self._by_evidence(name, cls, self._ways(name, cls), is_deep=is_deep)
        is_over = self.runner.is_over
        return other if not other.doubtful and not is_over and suspect.keys() <= self.mistakes(other).keys() else None

    def _by_evidence(self, name: str, cls: type, ways: Iterable[WayToBuild], most: int = MOST_TRIES, *, is_deep: bool = False) -> Searching:
        """is_deep: with all its layers from the start."""
        inputs = InputSearch(self.runner, self._input_shapes(cls), most, lambda made, error: self._adjusted(made, error, cls))
        furthest: Optional[ChoiceNode] = None
        given: Optional[FoundExample] = None
        first = ""
        failed = 0  # how many arguments a call of the project gives whose tensors do not fit
        for way in ways:
            if way.arguments is not None and not self.runner.is_over:
                expression = "%s(%s)" % (way.plan.text(), way.arguments)
                trial = self.runner.whole(expression)
                found = FoundExample(name, expression, way.plan.evidence, way.plan.where, way.call)
                given_now = _count_of(way.arguments)
                if _runs(trial, cls):
                    if failed > given_now:
                        continue  # What it does without, as a loss without targets, may be what the other call fails at.
                    yield Attempted(found)
                    return found
                failed = max(failed, given_now if found.call is not None and is_mismatch(trial) else 0)
                if given is None and self._fails_as_called(name, way, trial):
                    given = found
                continue
            if given is not None:
                break
            if _is_of_project(way) and cannot_be_built(self.runner.build(way.plan.text())[1]):  # What does not fit is wrong in the code.
                given = FoundExample(name, way.plan.text(), way.plan.evidence, way.plan.where, way.call)
                break
            first = first or way.plan.text()
            shallow = None if is_deep else (yield from self._by_few_layers(name, cls, way.plan, most))
            if shallow is not None:
                return shallow
            for plan, model in self._built(way.plan, cls):
                node = yield from self._called(name, inputs, plan, model)
                if node is not None:
                    yield Attempted(self._found(name, node, inputs))
                    return self._found(name, inputs.completed(node), inputs)
                furthest = _further(furthest, inputs.best)
                if not inputs.too_long:
                    break
            if self.runner.is_over:
                break
        if given is not None:  # The project's own call fails: no other one makes up for that.
            return given
        if furthest is not None:
            return self._doubtful(name, furthest, inputs)
        first = first or "%s()" % name  # What cannot even be built is told of.
        found = FoundExample(name, first, "inferred", doubtful=True)
        return replace(found, variants=tuple(self._other_options(found)))

    def _fails_as_called(self, name: str, way: WayToBuild, trial: Trial) -> bool:
        """True if what a call of the project fails at is wrong in the code."""
        may_be_wrong = is_mismatch(trial) or (not _may_be_old(way) and lacks_parts(trial, self._nodes.get(name), self._file))
        return way.call is not None and may_be_wrong

    def _doubtful(self, name: str, furthest: ChoiceNode, inputs: InputSearch) -> FoundExample:
        """The example that came furthest, as it runs with other sizes or options; one that may be wrong where it runs with none."""
        found, trial = self._found(name, furthest, inputs), furthest.trial
        is_ours = _is_built_by_project(found)
        other = runs_with_other_sizes(self.runner, found.expression, trial, keeps_constructor=is_ours, said=found.inputs_said)
        if other is None and not is_ours and trial is not None:
            other = self._with_other_options(name, found.expression, trial)
        if other is not None:
            return replace(found, expression=other)
        variants = (*self._other_options(found), *inputs.with_more(furthest))
        too_long = trial is not None and isinstance(trial.error, TooLong)
        return replace(found, doubtful=True, variants=variants, mistakes={} if too_long else None)

    def _with_other_options(self, name: str, expression: str, trial: Trial) -> Optional[str]:
        """The example with another text or truth for its constructor that does what fails, and runs; None where none was found."""
        other = runs_with_other_options(self.runner, expression, self._nodes.get(name)) if is_mismatch(trial) else None
        return other if other is not None and avoids_failure(self.runner, other, places_of(self.runner, trial)) else None

    def _by_few_layers(self, name: str, cls: type, plan: BuildPlan, most: int) -> Generator[Event, None, Optional[FoundExample]]:
        """For a model of many layers, which are alike: what it can be called with as found with few of them. Whether it runs with all of
        them its run tells.
        """
        for few in with_few_layers(plan, self.names, self.tree):
            model, built = self.runner.build(few.text())
            inputs = InputSearch(self.runner, self._input_shapes(cls), most, lambda made, error: [])
            node = (yield from self._called(name, inputs, few, model)) if built.error is None and callable(model) else None
            if node is not None:
                yield Attempted(self._found(name, node, inputs))
                node = inputs.completed(node)
                self._shallow = self._found(name, node, inputs)
                return replace(self._found(name, node_of(plan, node.arguments, node.sizes), inputs), untried=True)
        return None

    def _called(self, name: str, inputs: InputSearch, plan: BuildPlan, model: Any) -> Generator[Event, None, Optional[ChoiceNode]]:
        """The arguments with which a model runs to its end. Where that takes long, what came furthest is shown meanwhile."""
        for furthest in inputs.search(plan, model):
            if furthest.trial is not None and furthest.trial.error is None:
                return furthest
            if not self.shows and time.perf_counter() > self._shows_at and furthest.trial is not None and furthest.trial.classes:
                self.shows = True
                attempt(self.runner, furthest.expression)
                yield Attempted(replace(self._found(name, furthest, inputs), doubtful=True))
        return None

    def _other_options(self, found: FoundExample) -> List[str]:
        return [] if _is_built_by_project(found) else with_other_options(found.expression, self._nodes.get(found.target))

    def mistakes(self, found: FoundExample) -> Mapping[Mistake, Mismatch]:
        """Returns the mismatches of a doubtful example that no other example avoids."""
        if found.mistakes is not None:
            return found.mistakes
        return certain_mistakes(self.runner, found.expression, found.variants, _said_of(found))

    def _found(self, name: str, node: ChoiceNode, inputs: InputSearch) -> FoundExample:
        evidence, where = node.plan.evidence, node.plan.where
        if evidence == "inferred":
            said = inputs.said(node)
            if said is not None:
                evidence, where = "annotation", said.where
        return FoundExample(
            name,
            node.expression,
            evidence,
            where,
            has_guessed_settings=bool(node.plan.sizes),
            inputs_said=inputs.inputs_said,
        )

    def _ways(self, name: str, cls: type) -> Iterator[WayToBuild]:
        """Ways to build a class, with what it is called with where that is known, the most credible first."""
        candidates = self._candidates(name)
        unclear = [candidate for candidate in candidates if candidate.constructor and not is_known(candidate, self.names, self._value_of)]
        candidates = [candidate for candidate in candidates if candidate not in unclear]
        for candidate in candidates:
            if candidate.constructor:
                yield WayToBuild(_plan(candidate), _given(candidate), candidate.call)
        for candidate in candidates:
            if candidate.constructor and candidate.arguments is not None:  # What it is called with did not fit.
                yield WayToBuild(BuildPlan(candidate.constructor, candidate.sizes), None)
        built = [candidate for candidate in unclear if can_be_built(candidate, self.names, self._value_of)]
        for plan in {candidate.constructor: _plan(candidate) for candidate in built}.values():
            yield WayToBuild(plan, None)  # The project says how it is built, and not what it is called with.
        inferred = build_plans(cls, self.names, self.tree)
        for plan in inferred:
            for candidate in candidates:
                if not candidate.constructor:
                    yield WayToBuild(replace(plan, evidence=candidate.evidence, where=candidate.where), _given(candidate))
            yield WayToBuild(plan, None)
        for candidate in unclear:
            yield WayToBuild(_plan(candidate), _given(candidate))

    def _value_of(self, expression: str) -> Any:
        return self.runner.build(expression)[0]

    @cached_property
    def _all_candidates(self) -> List[Candidate]:
        """Returns the candidates that the project speaks for, the strongest first."""
        classes = [known for known in self._nodes if self._class(known) is not None]
        found = usages(self.tree, classes)
        for path in self.search.users:
            found += usages_elsewhere(self._text_of(path), path, classes, self.tree, self._file)
        found += documented_usages(self.tree, classes)
        built = {known: cls for known in classes for cls in [self._class(known)] if cls is not None}
        found += instantiated(self._file, Current.settings.folders, built, ("torch", package_of(self.names)))
        found += factories(self.tree, classes, _size_by_name)
        return [_in_file(candidate, self._file) for candidate in found]

    def _candidates(self, name: str) -> List[Candidate]:
        return [candidate for candidate in self._all_candidates if candidate.target == name]

    def models(self, name: str, cls: type) -> Iterator[Tuple[BuildPlan, Any]]:
        """Ways to build a class, with the models that they give, whatever it can be called with."""
        for way in self._ways(name, cls):
            yield from self._built(way.plan, cls)

    def first_way(self, name: str, cls: type) -> BuildPlan:
        """The most credible way to build a class, whether or not it can be built so."""
        return next(self._ways(name, cls)).plan

    def example_built_so(self, plan: BuildPlan, name: str, cls: type, arguments: str) -> FoundExample:
        """The example of a class that is built so, called with these arguments, or with others that are found; doubtful where nothing fits.

        Tensors keep their ranks, as the class is called alike whatever its settings are.
        """
        expression = "%s(%s)" % (plan.text(), arguments)
        trial = self.runner.whole(expression)
        other = expression if trial.error is None else None
        if is_mismatch(trial):
            other = runs_with_other_sizes(self.runner, expression, trial, keeps_constructor=True)
        if other is not None:
            return FoundExample(name, other, plan.evidence, plan.where)
        return self.example_of_plan(plan, name, cls, MOST_TRIES_AFTER_EDIT)

    def example_of_plan(self, plan: BuildPlan, name: str, cls: type, most: int = MOST_TRIES) -> FoundExample:
        """The example of a class that is built so; doubtful where nothing fits."""
        search = self._by_evidence(name, cls, [WayToBuild(plan, None)], most)
        while True:
            try:
                next(search)
            except StopIteration as end:
                found: FoundExample = end.value
                return found

    def _built(self, plan: BuildPlan, cls: type) -> Iterator[Tuple[BuildPlan, Any]]:
        """The model that a construction gives; where it cannot be built, those of constructions that mend what failed."""
        left, seen = [plan], {plan.text()}
        for _ in range(MOST_CONSTRUCTIONS):
            if not left or self.runner.is_over:
                return
            made = left.pop(0)
            model, trial = self.runner.build(made.text())
            if trial.error is None:
                if (callable(model) and not isinstance(model, type)) or isinstance(model, cls):
                    yield made, model  # Asked for another one, it takes too long to run.
                left, trial.error = [], TooLong()
            others = [other for other in self._adjusted(made, trial.error, cls) if other.text() not in seen]
            seen.update(other.text() for other in others)
            left[:0] = others

    def _adjusted(self, plan: BuildPlan, error: BaseException, cls: type) -> List[BuildPlan]:
        """Changes of a construction that may mend what failed. They are not what the project says."""
        return [replace(other, evidence="inferred", where="") for other in adjusted(plan, error, cls, self.names, self.tree)]

    def _input_shapes(self, cls: type) -> Dict[str, InputShape]:
        for base in cls.__mro__:
            node = self._nodes.get(base.__name__)
            forward = (
                next((item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "forward"), None) if node else None
            )
            if forward is not None:
                return input_shapes(forward, self._lines, node, self.tree)
        return {}


def _size_by_name(name: str) -> Optional[int]:
    """The size that a parameter's name speaks for; None where it speaks for none."""
    prior = prior_of(name, True)
    return prior.value if prior is not None and prior.kind in ("int", "image") and type(prior.value) is int else None


def _of_known(known: Known) -> FoundExample:
    return FoundExample(known.target, known.expression, known.evidence or "inferred", known.where, known.call)


def _is_built_by_project(found: FoundExample) -> bool:
    """True if the project says itself how the model of an example is built."""
    return found.evidence in ("usage", "factory")


def _runs(trial: Trial, cls: type) -> bool:
    """True if an attempt ran to its end, and came to `forward` of the class, where it came to any."""
    return trial.error is None and (cls in trial.classes or not trial.classes)


def _further(one: Optional[ChoiceNode], other: Optional[ChoiceNode]) -> Optional[ChoiceNode]:
    """The choice that came further; the first of two that came as far."""
    if one is None or other is None:
        return other if one is None else one
    reached = [node.trial.reached if node.trial is not None else -1 for node in (one, other)]
    return other if reached[1] > reached[0] else one


def _is_of_project(way: WayToBuild) -> bool:
    """True if the project itself builds a class so, or a function of it that needs no argument."""
    return (way.call is not None and not _may_be_old(way)) or way.plan.evidence == "factory"


def _may_be_old(way: WayToBuild) -> bool:
    """True if documentation says how to build a class: names in it may be those of an older version, sizes fit each other."""
    return way.call is not None and way.call.file.endswith(DOCUMENTATION)


def _count_of(arguments: str) -> int:
    """Returns the number of arguments of a call."""
    call = expression_of("f(%s)" % arguments)
    return len(call.args) + len(call.keywords) if isinstance(call, ast.Call) else 0


def _said_of(found: FoundExample) -> Said:
    return Said(_is_built_by_project(found) and not found.has_guessed_settings, found.inputs_said)


def _is_settled(known: Known) -> bool:
    """True if an example is not compared with others as long as it runs."""
    return known.chosen or known.proven


def _in_file(candidate: Candidate, file: str) -> Candidate:
    """A candidate whose call is in that file, unless it says another one."""
    call = candidate.call
    return replace(candidate, call=replace(call, file=file)) if call is not None and not call.file else candidate


def _plan(candidate: Candidate) -> BuildPlan:
    return BuildPlan(candidate.constructor, candidate.sizes, candidate.evidence, candidate.where)


def _given(candidate: Candidate) -> Optional[str]:
    return None if candidate.arguments is None else with_sizes(candidate.arguments, candidate.sizes)
