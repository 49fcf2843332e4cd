"""The first step: with which examples a document runs, and for which of its classes examples are searched for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shapelens.analysis.findings.findings import example_problems
from shapelens.examples.choose import choose, without_example
from shapelens.examples.found_examples import FoundExamples
from shapelens.examples.settings import Settings
from shapelens.lsp.documents.analysis import Analysis
from shapelens.lsp.documents.document import Document
from shapelens.lsp.workspace.configuration import Configuration
from shapelens.protocol import Known, Search
from shapelens.source.module import Module

# Other documents by URI: the version and the text that a run goes through.
Others = Mapping[str, tuple[int, Module]]


@dataclass(frozen=True)
class Chosen:
    """Holds what one version of a document is to be run with.

    analysis: nothing has run for it yet; it has the examples that were given. lacking: the classes without one, by qualified name.
    """

    analysis: Analysis
    lacking: Sequence[str]


class Chooser:
    """Chooses the examples of a document. Starts nothing."""

    def __init__(self, documents: Mapping[str, Document], configuration: Configuration, found: FoundExamples) -> None:
        self._documents = documents
        self._configuration = configuration
        self._found = found

    def choose(self, document: Document) -> Chosen:
        """The choice for the newest text of an open document."""
        settings, module = self._configuration.of(document), document.module
        choice = choose(module, document.path, settings)
        analysis = Analysis(
            document.version,
            module,
            settings,
            choice.examples,
            findings=example_problems(document.path, choice),
            others={self._documents[uri].path: other for uri, (_, other) in self.others(document).items()},
        )
        return Chosen(analysis, [] if module.errors else without_example(module, choice))

    def choose_given(self, document: Document) -> Analysis:
        """The choice for a file that is not open: its given examples only."""
        settings: Settings = self._configuration.of(document)
        return Analysis(0, document.module, settings, choose(document.module, document.path, settings).examples)

    def search_around(self, importer: Document, classes: Sequence[str] = ()) -> Search | None:
        """Returns what a worker needs to look for models of these classes in a file that is not open; without classes, to run those that
        were found before. None where there is nothing to run.
        """
        known = self.known(importer, importer.module, [cls.qualname for cls in importer.module.classes]) if not classes else []
        found = [each.target for each in known if each.proven or each.former is not None]
        return self.search(importer, importer.module, classes or found)

    def others(self, document: Document) -> Others:
        """The documents that a run may go through, each with the text that it runs with."""
        others = [each for each in self._documents.values() if each is not document]
        return {each.uri: (each.version, module) for each in others if (module := each.parsable) is not None}

    def known(self, document: Document, module: Module, classes: Sequence[str]) -> list[Known]:
        """The examples that were found for these classes before, as far as the text that speaks for them is the same."""
        return self._found.known(document.path, module, classes, document.evidence_around)

    def search(self, document: Document, module: Module, classes: Sequence[str]) -> Search | None:
        """Returns what a worker needs to look for examples of these classes; None where there are none."""
        if not classes:
            return None
        classes = self._found.in_order(document.path, classes)
        seen = document.importer_traces.classes()
        later = [name for name in classes if name.rpartition(".")[2] in seen]
        return Search(self.known(document, module, classes), [each.path for each in document.importers or []], classes, later=later)
