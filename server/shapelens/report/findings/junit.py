"""JUnit's XML: a suite for each file that ran, with a test case for each error or warning, or one that passed.

Format: junit-10.xsd of Jenkins' xUnit plugin.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from shapelens.report.findings.report import Report, ReportedFile

_FAILURES = ("error", "warning")
# XML 1.0 has no way to write these.
_NO_CHARACTERS = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text(report: Report) -> str:
    """The XML document."""
    files = [file for file in report.files if file.checked.ran or file.findings]
    suites = ElementTree.Element("testsuites", name="shapelens")
    failures = [_suite(suites, file) for file in files]
    suites.set("tests", str(sum(max(count, 1) for count in failures)))
    suites.set("failures", str(sum(failures)))
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _suite(suites: ElementTree.Element, file: ReportedFile) -> int:
    """Add the suite of a file; the number of its failures."""
    failed = [each.finding for each in file.findings if not each.known and each.finding.severity in _FAILURES]
    path = _text(file.path)
    suite = ElementTree.SubElement(suites, "testsuite", name=path, tests=str(max(len(failed), 1)), failures=str(len(failed)), errors="0")
    module = path.removesuffix(".py").replace("/", ".")
    if not failed:
        ElementTree.SubElement(suite, "testcase", classname=module, name="shapes")
    for finding in failed:
        place = f"line {finding.line}, column {finding.column + 1}"
        name = _text(f"{finding.code} ({finding.scope or 'module'}, {place})")
        case = ElementTree.SubElement(suite, "testcase", classname=module, name=name)
        failure = ElementTree.SubElement(case, "failure", message=_text(finding.message), type=finding.severity)
        failure.text = _text(f"{file.path}:{finding.line}:{finding.column + 1}: {finding.message}")
    return len(failed)


def _text(value: str) -> str:
    return _NO_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", value)
