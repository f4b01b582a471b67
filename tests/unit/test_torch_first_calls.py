"""What PyTorch does at a first call besides compiling is left out, and comes back behind it."""

from __future__ import annotations

import functools
import gc
import logging
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch._dynamo import funcname_cache, guards, output_graph, symbolic_convert

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch
from polyblocks_torch.tracing import dynamo_logs
from polyblocks_torch.tracing.collection import collection_paused
from polyblocks_torch.tracing.dynamo_logs import without_logs
from polyblocks_torch.tracing.frame_memory import FrameMemory


@pytest.fixture
def collecting() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if enabled else gc.disable)()


@pytest.fixture
def timings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """The calls of PyTorch's function that times guards."""
    calls: list[tuple[object, ...]] = []

    def original(*args: object) -> float:
        calls.append(args)
        return 1.5

    monkeypatch.setattr(guards, "profile_guard_manager", original)
    monkeypatch.setattr(dynamo_logs, "_install", functools.cache(dynamo_logs._install.__wrapped__))
    return calls


def test_guards_are_timed_outside_alone(timings: list[tuple[object, ...]]) -> None:
    with without_logs():
        with without_logs():
            assert guards.profile_guard_manager("root", {}, 1) == 0.0
        assert guards.profile_guard_manager("root", {}, 1) == 0.0
    assert not timings
    assert guards.profile_guard_manager("root", {}, 1) == 1.5
    assert timings == [("root", {}, 1)]


def test_guards_of_other_threads_are_timed(timings: list[tuple[object, ...]]) -> None:
    with without_logs():
        other = threading.Thread(target=guards.profile_guard_manager, args=("root", {}, 1))
        other.start()
        other.join()
    assert timings == [("root", {}, 1)]


def test_guards_are_timed_where_the_log_shows_it(
    timings: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards.guards_log, "isEnabledFor", lambda level: level == logging.DEBUG)
    with without_logs():
        assert guards.profile_guard_manager("root", {}, 1) == 1.5
    assert len(timings) == 1


def test_lines_have_names_where_a_log_shows_them(
    timings: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    del timings
    monkeypatch.setattr(symbolic_convert, "get_funcname", lambda name, line: f"{name} {line}")
    with without_logs():
        assert symbolic_convert.get_funcname("f.py", 3) is None
        log = output_graph.trace_call_log
        monkeypatch.setattr(log, "isEnabledFor", lambda level: level == logging.DEBUG)
        with without_logs():
            assert symbolic_convert.get_funcname("f.py", 3) == "f.py 3"
        assert symbolic_convert.get_funcname("f.py", 3) is None
    assert symbolic_convert.get_funcname("f.py", 3) == "f.py 3"


def test_no_file_of_a_call_is_taken_apart() -> None:
    funcname_cache.clearcache()
    polyblocks_jit_torch(lambda x: torch.nn.functional.silu(x) * 3)(torch.ones(3))
    assert not funcname_cache.cache


def test_collection_is_as_it_was(collecting: None) -> None:
    with collection_paused():
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    with collection_paused():
        pass
    assert not gc.isenabled()


def test_collection_is_back_after_an_error(collecting: None) -> None:
    with pytest.raises(ValueError, match="in the block"), collection_paused():
        raise ValueError("in the block")
    assert gc.isenabled()


def test_the_last_of_several_threads_ends_the_pause(collecting: None) -> None:
    first_ended, second_began = threading.Event(), threading.Event()
    seen: list[bool] = []

    def second() -> None:
        with collection_paused():
            second_began.set()
            first_ended.wait(20)
            seen.append(gc.isenabled())

    thread = threading.Thread(target=second)
    with collection_paused():
        thread.start()
        second_began.wait(20)
    first_ended.set()
    thread.join()
    assert seen == [False]
    assert gc.isenabled()


def test_a_fork_of_another_thread_collects(collecting: None) -> None:
    begun, done = threading.Event(), threading.Event()

    def paused() -> None:
        with collection_paused():
            begun.set()
            done.wait(20)

    thread = threading.Thread(target=paused)
    thread.start()
    begun.wait(20)
    pid = os.fork()
    if not pid:
        os._exit(0 if gc.isenabled() else 1)
    done.set()
    thread.join()
    assert os.waitpid(pid, 0)[1] == 0
    assert gc.isenabled()


def test_frames_are_compiled_so(
    collecting: None,
    timings: list[tuple[object, ...]],
    compiled_in_this_process: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[bool] = []
    converted = FrameMemory.converted

    def watched(*args: Any) -> Any:
        seen.append(gc.isenabled())
        return converted(*args)

    monkeypatch.setattr(FrameMemory, "converted", watched)

    @polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True})
    def function(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    assert function(torch.zeros(5)).tolist() == [1.0] * 5
    assert seen == [False]
    assert gc.isenabled()
    assert not timings
