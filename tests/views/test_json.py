"""The JSON document: the contract for scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from qmodel.result import Change, Event, PropertyResult, Report, Run, Step, ThreadInfo, Trace, Verdict
from qmodel.views import json_view
from tests.views.samples import SAMPLES, XMIT0, inconclusive, measured, outcome, run, tail

SCHEMA = Path(__file__).parents[2] / "docs" / "report.schema.json"


def parsed(*runs: Run) -> Any:  # noqa: ANN401
    """Return the document on some runs, read back."""
    return json.loads(json_view.document(Report("0.1.0", runs)))


def test_every_sample_is_as_the_schema_says() -> None:
    """The schema in docs/ describes what is printed, with no key that it does not know."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    for node in (schema, *(schema["$defs"][name] for name in ("run", "property", "measure", "trace", "access"))):
        node["additionalProperties"] = False
    jsonschema.Draft202012Validator(schema).validate(parsed(*(make() for make in SAMPLES.values())))


def test_schema_refuses_an_unknown_verdict() -> None:
    """The schema can fail."""
    jsonschema = pytest.importorskip("jsonschema")
    document = parsed(tail())
    document["runs"][0]["verdict"] = "fine"
    with pytest.raises(jsonschema.ValidationError, match="'fine' is not one of"):
        jsonschema.validate(document, json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_keys_of_a_run() -> None:
    """Keys and their order are part of the contract."""
    expected = (
        "model variant params memory scenario engine reductions verdict strength why complete expected as_expected "
        "states transitions depth seconds bytes_per_state properties measures"
    )
    assert expected.split() == list(parsed(tail())["runs"][0])


def test_keys_of_an_access() -> None:
    """An access names its step, its place in the source and what it changed."""
    access = parsed(tail())["runs"][0]["properties"][0]["trace"]["steps"][5]
    assert {
        "step": 2,
        "alternative": 0,
        "cpu": 1,
        "thread": "net_tx_action",
        "function": "dequeue_skb",
        "text": "qlen--",
        "file": "specs/requeue.py",
        "line": 46,
        "changes": {"qlen": ["1", "0"]},
    } == access


def test_per_cpu_parameter_is_an_array() -> None:
    """`packets` is one number for each CPU."""
    assert {"cpus": 2, "packets": [2, 1], "busy": 2} == parsed(tail())["runs"][0]["params"]


def test_nothing_expected_is_null() -> None:
    """Where the specification says nothing, so does the document."""
    found = parsed(run("v", outcome(Verdict.HOLDS, (XMIT0,)), None))["runs"][0]
    assert (None, None) == (found["expected"], found["as_expected"])


def test_inconclusive_says_why() -> None:
    """An inconclusive run has the reason and no strength."""
    found = parsed(inconclusive())["runs"][0]
    assert ("1,000,000 states reached (--max-states)", None) == (found["why"], found["strength"])


def test_length_counts_steps_and_steps_lists_accesses() -> None:
    """Steps that were joined can be told apart from the accesses that they made."""
    environment = ThreadInfo("waker", -1, "environment")
    twice = (Change("x", "0", "1"), Change("y", "0", "1"), Change("x", "1", "2"))
    events = [Event(n, "f", "t", "store", "m.py", 1, "t", twice if n else ()) for n in (0, 0, 1)]
    trace = Trace((Step(0, 0, tuple(events[:2])), Step(1, 3, tuple(events[2:]))), 1, (), ())
    prop = PropertyResult("p", "", Verdict.REFUTED, "", trace)
    found = parsed(run("v", outcome(Verdict.REFUTED, (XMIT0, environment), prop), None))
    actual = found["runs"][0]["properties"][0]["trace"]
    assert 2 == actual["length"]
    assert [(0, 0, 0), (0, 0, 0), (1, 3, None)] == [(s["step"], s["alternative"], s["cpu"]) for s in actual["steps"]]
    assert {"x": ["0", "2"], "y": ["0", "1"]} == actual["steps"][2]["changes"]


def test_measure_without_witness_is_null() -> None:
    """A measure has its maximum, and a trace or null."""
    measures = parsed(measured())["runs"][0]["measures"]
    assert [("defer_list", 3, False), ("dropped", 1, True)] == [
        (m["name"], m["max"], m["trace"] is None) for m in measures
    ]


def test_document_ends_in_a_newline_and_is_ascii() -> None:
    """The document can be appended to a file and piped through any locale."""
    document = json_view.document(Report("0.1.0-\u00e9", ()))
    assert '{\n  "schema": 1,\n  "qmodel": "0.1.0-\\u00e9",\n  "runs": []\n}\n' == document
