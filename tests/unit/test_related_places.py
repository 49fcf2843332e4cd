"""Of the places that have to do with a finding, three are told."""

from __future__ import annotations

from shapelens.analysis.explanations.related_places import MOST_PLACES, Related, distinct_places
from shapelens.source.positions import Span


def test_three_places_are_told_each_once_and_never_the_findings_own() -> None:
    own = Span(4, 8, 4, 20)
    places = [Related(None, own, "here"), *(Related(None, Span(line, 0, line, 5), "there") for line in (1, 1, 2, 3, 5, 6))]
    assert [each.span.line for each in distinct_places(places, own)] == [1, 2, 3] and MOST_PLACES == 3
