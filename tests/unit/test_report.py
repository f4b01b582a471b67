"""Reports: what `explain` says."""

from __future__ import annotations

import pytest

import polyblocks
from polyblocks import events
from polyblocks.artifact import Artifact
from polyblocks.cache.cache import default_cache
from polyblocks.events import Event
from polyblocks.reports.report import Fallback, Part, Report, describe_kernel

KEY = "c" * 64


def program(name: str = "blur") -> Artifact:
    manifest = {
        "target": "toy",
        "arch": "v1",
        "name": name,
        "entry": "f",
        "arguments": [],
        "workspace_bytes": 0,
        "kernels": [{"name": "conv", "parallel": 8}, {"name": "relu", "parallel": None}],
        "checks": [],
        "versions": {},
        "report": {"seconds": 0.25, "decisions": [{"what": "fused"}]},
    }
    return Artifact(manifest, {"code": b""})


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(tmp_path))
    return default_cache()


def test_nothing_happened():
    report = Report()
    assert str(report) == "nothing was compiled\nno fallbacks"
    assert not report.whole


def test_an_artifact():
    report = Report()
    report.add_artifact(program())
    assert report.whole
    assert str(report).splitlines() == [
        "blur: 2 kernels for toy (v1), 0.25 s to compile",
        "  conv: parallel over 8",
        "  relu",
        "no fallbacks",
    ]
    assert report.to_json()["parts"][0]["report"]["decisions"] == [{"what": "fused"}]


def test_fallbacks_are_counted():
    report = Report()
    row = {"op": "aten.x", "reason": "no lowering", "location": "f.py:3", "more": 1}
    report.add(Event("fallback", row))
    report.add(Event("fallback", row))
    report.add(Event("fallback", {"op": None, "reason": "why"}))
    assert report.fallbacks == {
        Fallback("aten.x", "no lowering", "f.py:3"): 2,
        Fallback("?", "why"): 1,
    }
    assert "2 fallbacks to the framework:" in str(report)
    assert "  aten.x at f.py:3: no lowering (2 times)" in str(report)
    assert "  ?: why" in str(report)
    assert report.to_json()["fallbacks"][0] == {
        "op": "aten.x",
        "reason": "no lowering",
        "location": "f.py:3",
        "count": 2,
    }


@pytest.mark.parametrize(
    "kinds, origin", [(["cache-miss"], "compiled"), (["cache-hit"], "from the cache")]
)
def test_programs_are_found_by_their_keys(kinds, origin, own_cache):
    own_cache.put(KEY, program())
    report = Report()
    for kind in kinds:
        report.add(Event(kind, {"key": KEY}))
    assert str(report).startswith(f"blur: 2 kernels for toy (v1), {origin}, 0.25 s")
    report.add(Event("cache-hit", {"key": KEY}))
    assert len(report.parts) == 1


def test_a_key_that_is_gone_is_left_out(own_cache):
    report = Report()
    report.add(Event("cache-hit", {"key": KEY}))
    assert report.parts == []


def test_a_plan_brings_its_fallbacks():
    report = Report()
    plan = {"kind": "plan", "report": {"fallbacks": [{"op": "a", "reason": "b", "location": "c"}]}}
    report.add_artifact(Artifact(plan, {}))
    assert list(report.fallbacks) == [Fallback("a", "b", "c")]
    assert report.parts == []


def test_explain_hears_what_happens_inside_the_block_only():
    events.emit("fallback", op="before", reason="r", location="")
    with polyblocks.explain() as report:
        events.emit("fallback", op="inside", reason="r", location="")
    events.emit("fallback", op="after", reason="r", location="")
    assert [f.op for f in report.fallbacks] == ["inside"]


def test_a_part_of_an_old_manifest_has_defaults():
    part = Part.of(Artifact({"name": "x"}, {}))
    assert (part.name, part.kernels, part.seconds) == ("x", (), 0.0)


def test_a_kernel_in_one_line():
    assert describe_kernel({"name": "k", "parallel": 4, "code_bytes": None}) == "k: parallel over 4"
    row = {"name": "k", "kind": "stencil", "parallel": 1, "calls": 3, "code_bytes": 9, "width": 16}
    text = "k: stencil, serial, called 3 times, 9 bytes of code, width=16; from conv2d a.py:1"
    assert describe_kernel(row | {"sources": ["conv2d a.py:1"]}) == text
    assert describe_kernel({}) == "?"


def test_programs_without_code_have_no_graphs(monkeypatch):
    from polyblocks.runtime.device import executable

    asked = []
    monkeypatch.setattr(executable, "graphs_of", lambda digest: asked.append(digest) or [])
    report = Report()
    report.add_artifact(program())
    assert report.graphs() == []
    assert "" not in asked
