"""Isolation: whatever happens in the child, the parent gets bytes or one clear error."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from polyblocks import errors, events
from polyblocks.errors import (
    ArtifactError,
    ExecutionError,
    FallbackError,
    InputError,
    MachineError,
    NativeCrashError,
    OldSpellingWarning,
    OptionError,
    PassError,
    PluginError,
    PolyBlocksError,
    TargetError,
    UnsupportedError,
)
from polyblocks.isolation import isolation, stall
from polyblocks.isolation.forks import fork_lock
from polyblocks.isolation.isolation import run_isolated


def no_child_is_left() -> bool:
    """Whether all children are reaped soon, beside this thread."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
        time.sleep(0.001)
    return False


@pytest.fixture(autouse=True)
def _no_zombies():
    yield
    assert no_child_is_left()


def run_script(body: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "default", "-c", textwrap.dedent(body)],
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_returns_bytes_of_another_process():
    assert int(run_isolated(lambda: str(os.getpid()).encode())) != os.getpid()
    assert not isolation.is_isolated_child()
    assert run_isolated(lambda: str(isolation.is_isolated_child()).encode()) == b"True"


def test_goes_on_while_the_child_ends(monkeypatch):
    """Its memory takes milliseconds to free."""
    wait, ended = os.waitpid, threading.Event()

    def slow(pid, options):
        assert options or ended.wait(60)
        return wait(pid, options)

    monkeypatch.setattr(os, "waitpid", slow)
    assert run_isolated(lambda: b"done") == b"done"
    ended.set()
    assert no_child_is_left()


def test_a_program_that_forks_then_waits_for_its_own_child(monkeypatch):
    wait = os.waitpid

    def slow(pid, options):
        time.sleep(0 if options else 0.3)
        return wait(pid, options)

    monkeypatch.setattr(os, "waitpid", slow)
    assert run_isolated(lambda: b"done") == b"done"
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    assert os.wait() == (pid, 7 << 8)
    assert no_child_is_left()


def test_is_reaped_where_no_thread_can_be_started(monkeypatch):
    def fail(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    assert run_isolated(lambda: b"done") == b"done"
    with pytest.raises(ChildProcessError, match="No child"):
        os.waitpid(-1, os.WNOHANG)


def test_returns_many_bytes():
    data = os.urandom(1 << 20) * 50
    assert run_isolated(lambda: data) == data
    assert run_isolated(lambda: b"") == b""


def test_changes_nothing_in_the_parent():
    state = {"n": 0}

    def job() -> bytes:
        state["n"] = 1
        return b"x"

    run_isolated(job)
    assert state == {"n": 0}


def test_segmentation_fault_names_signal_label_stage_and_pass():
    def job() -> bytes:
        events.emit("stage-begin", stage="S2")
        events.emit("pass-begin", stage="S2", name="fold-views")
        ctypes.string_at(0)
        return b""

    with pytest.raises(
        NativeCrashError, match=r"SIGSEGV.* in pass 'fold-views' of stage S2 while compiling 'blur'"
    ):
        run_isolated(job, label="blur")


def test_abort_tells_what_it_wrote_to_stderr():
    def job() -> bytes:
        os.write(2, b"LLVM ERROR: cannot select\nStack dump:\n0. main\n1. f\n2. g\n3. h\n")
        os.abort()

    with pytest.raises(NativeCrashError, match=r"SIGABRT.*its last output: LLVM ERROR: cannot sel"):
        run_isolated(job)


def test_exit_in_native_code_is_a_crash_too():
    with pytest.raises(NativeCrashError, match=r"left with exit status 7 and no result"):
        run_isolated(lambda: os._exit(7))


def test_unnamed_signal():
    realtime = signal.SIGRTMIN + 3
    with pytest.raises(NativeCrashError, match=f"crashed \\(signal {realtime}"):
        run_isolated(lambda: os.kill(os.getpid(), realtime))


def test_killed_child_mentions_memory():
    with pytest.raises(NativeCrashError, match=r"SIGKILL.*out of memory"):
        run_isolated(lambda: os.kill(os.getpid(), signal.SIGKILL))


@pytest.mark.parametrize(
    "error",
    [
        PolyBlocksError("a"),
        OptionError("unknown option"),
        PluginError("missing"),
        TargetError("no such arch"),
        InputError("wrong dtype"),
        UnsupportedError("no lowering", op="aten.foo", location="model.py:12"),
        UnsupportedError("no lowering"),
        MachineError("the linker does not run", op="aten.foo"),
        NativeCrashError("inner", op="aten.unfold"),
        PassError("tile-nests", "S3", "ValueError: no", "/tmp/x.mlir"),
        ArtifactError("damaged"),
        ExecutionError("index out of range"),
        FallbackError("strict", op="aten.bar", location="a.py:1"),
    ],
    ids=lambda e: type(e).__name__,
)
def test_our_errors_keep_class_message_and_fields(error):
    def job() -> bytes:
        raise error

    with pytest.raises(type(error), match=r".") as caught:
        run_isolated(job)
    assert type(caught.value) is type(error)
    assert str(caught.value) == str(error)
    assert vars(caught.value) == vars(error)


def test_every_error_class_is_covered_above():
    ours = {c for c in vars(errors).values() if isinstance(c, type)}
    mark = test_our_errors_keep_class_message_and_fields.pytestmark[0]
    assert {type(e) for e in mark.args[1]} == ours & {
        c for c in ours if issubclass(c, PolyBlocksError)
    }


def test_plugins_own_error_class_crosses_as_its_base():
    class VendorError(TargetError):
        pass

    def job() -> bytes:
        raise VendorError("no licence for the chip")

    with pytest.raises(TargetError, match=r"^no licence for the chip$") as caught:
        run_isolated(job)
    assert type(caught.value) is TargetError


def test_other_exceptions_become_unsupported_with_a_traceback_note():
    def job() -> bytes:
        return {}["missing"]

    with pytest.raises(UnsupportedError, match=r"(?m)^KeyError: 'missing'$") as caught:
        run_isolated(job)
    assert "in job" in caught.value.__notes__[0]


def test_system_exit_does_not_run_exit_handlers():
    with pytest.raises(UnsupportedError, match=r"(?m)^SystemExit: 3$"):
        run_isolated(lambda: sys.exit(3))


def test_job_must_return_bytes():
    with pytest.raises(
        UnsupportedError, match=r"TypeError: an isolated job returns bytes, not str"
    ):
        run_isolated(lambda: "text")


def test_events_reach_listeners_emit_and_sink_in_order():
    def job() -> bytes:
        events.emit("stage-begin", stage="S1")
        for i in range(300):
            events.emit("decision", what=f"tile {i}", size=i, odd={1, 2}.__class__)
        return b"done"

    seen: list[events.Event] = []
    heard: list[events.Event] = []
    sunk: list[events.Event] = []
    previous = events.set_sink(sunk.append)
    try:
        with events.listening(heard.append):
            assert run_isolated(job, emit=seen.append) == b"done"
    finally:
        events.set_sink(previous)
    for got in (seen, heard, sunk):
        assert [e.kind for e in got] == ["stage-begin"] + ["decision"] * 300
        assert [e.data["size"] for e in got[1:]] == list(range(300))


def test_warnings_of_old_spellings_reach_the_parent():
    def job() -> bytes:
        warnings.warn("write 'b'", OldSpellingWarning, stacklevel=1)
        warnings.warn("of a library", FutureWarning, stacklevel=1)
        return b"done"

    with pytest.warns(OldSpellingWarning) as seen:
        assert run_isolated(job) == b"done"
    assert [str(w.message) for w in seen] == ["write 'b'"]


def test_decisions_before_a_pass_that_crashes_are_known():
    def job() -> bytes:
        events.emit("decision", what="tile")
        events.emit("pass-begin", stage="S3", name="tile-nests")
        os.kill(os.getpid(), signal.SIGKILL)
        return b""

    seen: list[events.Event] = []
    with pytest.raises(NativeCrashError, match="'tile-nests'"):
        run_isolated(job, emit=seen.append)
    assert [e.kind for e in seen] == ["decision", "pass-begin"]


def test_observer_error_kills_the_child_and_passes_on():
    def job() -> bytes:
        events.emit("stage-begin", stage="S1")
        time.sleep(60)
        return b""

    def observer(event: events.Event) -> None:
        raise ZeroDivisionError("from the observer")

    begin = time.monotonic()
    with pytest.raises(ZeroDivisionError, match=r"from the observer"):
        run_isolated(job, emit=observer)
    assert time.monotonic() - begin < 5


def die_by(number: int) -> Callable[[], bytes]:
    def job() -> bytes:
        os.kill(os.getpid(), number)
        return b""

    return job


def out_of_memory() -> bytes:
    raise MemoryError("no room")


@pytest.mark.parametrize(
    "job, transient",
    [
        (die_by(signal.SIGSEGV), False),
        (die_by(signal.SIGFPE), False),
        (die_by(signal.SIGKILL), True),
        (die_by(signal.SIGTERM), True),
        (die_by(signal.SIGINT), True),
        (out_of_memory, True),
        (lambda: time.sleep(60), True),
        (lambda: os._exit(3), False),
        (lambda: 1 // 0, False),
    ],
)
def test_only_what_lies_in_the_moment_is_transient(job, transient):
    with pytest.raises(UnsupportedError, match=r"crashed|stopped|left with|Error: ") as caught:
        run_isolated(job, timeout_s=0.5)
    assert caught.value.transient is transient


def test_a_job_may_nest_calls_wherever_it_is_run():
    def nested(depth: int) -> int:
        return depth and 1 + nested(depth - 1)

    def below(depth: int) -> bytes:
        if depth:
            return below(depth - 1)
        return run_isolated(lambda: str(nested(room - 100)).encode())

    room = sys.getrecursionlimit()
    assert below(room - 300) == str(room - 100).encode()
    with pytest.raises(UnsupportedError, match="RecursionError: ") as caught:
        run_isolated(lambda: str(nested(room * 10)).encode())
    assert not caught.value.transient
    assert sys.getrecursionlimit() == room


def test_hanging_job_is_stopped():
    def job() -> bytes:
        events.emit("pass-begin", stage="S3", name="tile-nests")
        time.sleep(60)
        return b""

    begin = time.monotonic()
    with pytest.raises(
        MachineError, match=r"stopped after 0.3 s in pass 'tile-nests'.*'compile_timeout'"
    ):
        run_isolated(job, timeout_s=0.3)
    assert time.monotonic() - begin < 5


def test_stalled_job_is_tried_once_more(monkeypatch, tmp_path):
    monkeypatch.setattr(isolation, "STALL_S", 0.3)
    first = tmp_path / "first"

    def job() -> bytes:
        if not first.exists():
            first.touch()
            threading.Event().wait()
        return b"second"

    assert run_isolated(job) == b"second"


def test_job_that_stalls_twice_is_given_up(monkeypatch):
    monkeypatch.setattr(isolation, "STALL_S", 0.3)

    def job() -> bytes:
        events.emit("pass-begin", stage="S3", name="tile-nests")
        threading.Event().wait()
        return b""

    with pytest.raises(
        NativeCrashError, match=r"stopped after doing nothing for 0.3 s in pass 'tile-nests'"
    ) as caught:
        run_isolated(job)
    assert caught.value.transient


def test_stall_limit_of_the_caller_allows_one_try(tmp_path):
    tries = tmp_path / "tries"

    def job() -> bytes:
        with tries.open("a") as file:
            file.write("x")
        threading.Event().wait()
        return b""

    with pytest.raises(isolation.StalledError, match=r"stopped after doing nothing for 0.3 s"):
        run_isolated(job, stall_s=0.3)
    assert tries.read_text() == "x"


def test_job_that_computes_or_waits_for_a_tool_has_not_stalled(monkeypatch):
    monkeypatch.setattr(isolation, "STALL_S", 0.3)

    def computes() -> bytes:
        end = time.monotonic() + 1
        while time.monotonic() < end:
            pass
        return b"computed"

    def waits() -> bytes:
        return subprocess.run(["sleep", "1"], check=True).returncode.to_bytes(1, "little")

    assert run_isolated(computes) == b"computed"
    assert run_isolated(waits) == b"\0"


def test_no_stall_where_the_system_does_not_tell(monkeypatch, tmp_path):
    monkeypatch.setattr(stall, "_PROC", tmp_path)
    watch = stall.StallWatch(os.getpid(), 0.0)
    time.sleep(0.01)
    assert not watch.has_stalled()


def test_no_stall_after_a_pause_of_all(monkeypatch):
    child = subprocess.Popen(["sleep", "60"])
    try:
        watch = stall.StallWatch(child.pid, 1.0)
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now)
        looks = []
        for pause in (0, 0.6, 0.6, 100, 0.6, 0.6):
            now += pause
            looks.append(watch.has_stalled())
        assert looks == [False, False, True, False, False, True]
    finally:
        child.kill()
        child.wait()


def test_scratch_file_without_memory_files(monkeypatch):
    monkeypatch.delattr(os, "memfd_create", raising=False)
    with pytest.raises(NativeCrashError, match=r"its last output: bye"):
        run_isolated(lambda: os.abort() if os.write(2, b"bye") else b"")


def test_job_that_closes_the_pipe_and_hangs_is_stopped():
    def job() -> bytes:
        os.closerange(3, 100)
        time.sleep(60)
        return b""

    with pytest.raises(NativeCrashError, match=r"SIGKILL"):
        run_isolated(job)


def test_crash_is_seen_while_a_grandchild_holds_the_pipe():
    def job() -> bytes:
        if os.fork() == 0:
            time.sleep(5)
            os._exit(0)
        os.abort()

    begin = time.monotonic()
    with pytest.raises(NativeCrashError, match=r"SIGABRT"):
        run_isolated(job)
    assert time.monotonic() - begin < 4


def test_eight_threads_at_once():
    def one(n: int) -> bytes:
        def job() -> bytes:
            if n % 3 == 0:
                os.abort()
            return str(n).encode() * 1000

        try:
            return run_isolated(job, label=str(n))
        except NativeCrashError as error:
            return str(error).encode()

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(one, range(24)))
    for n, result in enumerate(results):
        if n % 3 == 0:
            assert f"while compiling '{n}'".encode() in result
        else:
            assert result == str(n).encode() * 1000


def test_fork_waits_for_native_code_of_other_threads():
    entered, leave = threading.Event(), threading.Event()

    def native() -> None:
        with fork_lock:
            entered.set()
            leave.wait(10)

    other = threading.Thread(target=native)
    other.start()
    entered.wait(10)
    done: list[bytes] = []
    waiting = threading.Thread(target=lambda: done.append(run_isolated(lambda: b"x")))
    waiting.start()
    waiting.join(0.2)
    assert done == []
    leave.set()
    waiting.join(10)
    other.join()
    assert done == [b"x"]


def test_child_initializers_run_first_and_only_in_the_child():
    ran: list[int] = []

    @isolation.on_child_start
    def prepare() -> None:
        ran.append(os.getpid())

    try:
        isolation.on_child_start(prepare)  # once, however often it is registered
        pids = run_isolated(lambda: repr((ran, os.getpid())).encode())
        inside, pid = eval(pids)
        assert inside == [pid]
        assert ran == []
    finally:
        isolation._child_initializers.remove(prepare)


def test_nested_call_runs_in_the_same_child():
    def job() -> bytes:
        return str(os.getpid()).encode() + b" " + run_isolated(lambda: str(os.getpid()).encode())

    outer, inner = run_isolated(job).split()
    assert outer == inner


def test_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("POLYBLOCKS_ISOLATE", "0")
    seen: list[events.Event] = []

    def job() -> bytes:
        events.emit("stage-begin", stage="S1")
        return str(os.getpid()).encode()

    assert int(run_isolated(job, emit=seen.append)) == os.getpid()
    assert [e.kind for e in seen] == ["stage-begin"]


def test_failed_fork_says_what_to_do(monkeypatch):
    def fork() -> int:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fork)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(UnsupportedError, match=r"no process can be started.*POLYBLOCKS_ISOLATE=0"):
        run_isolated(lambda: b"")
    assert len(os.listdir("/proc/self/fd")) == before


def test_leaks_no_file_descriptor():
    run_isolated(lambda: b"")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        run_isolated(lambda: b"")
        with pytest.raises(NativeCrashError, match=r"SIGABRT"):
            run_isolated(os.abort)
    assert len(os.listdir("/proc/self/fd")) == before


def test_parents_garbage_is_not_finalized_in_the_child(tmp_path):
    class Node:
        pass

    node = Node()
    node.self = node
    weakref.finalize(node, (tmp_path / "finalized").touch)

    def job() -> bytes:
        gc.collect()
        return b""

    gc.disable()
    try:
        del node
        run_isolated(job)
        assert not (tmp_path / "finalized").exists()
    finally:
        gc.enable()


def test_lost_exit_status_is_handled():
    # SIGCHLD is ignored: the kernel reaps, waitpid finds no child.
    done = run_script(
        """
        import os, signal
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        from polyblocks.errors import UnsupportedError
        from polyblocks.isolation.isolation import run_isolated
        assert run_isolated(lambda: b"x" * 1000000) == b"x" * 1000000
        try:
            run_isolated(os.abort)
        except UnsupportedError as error:
            print(error)
        try:
            run_isolated(lambda: __import__("time").sleep(60), timeout_s=0.2)
        except UnsupportedError as error:
            print(error)
        """
    )
    assert done.stderr == ""
    assert "signal unknown" in done.stdout
    assert "stopped after 0.2 s" in done.stdout


def test_program_sees_nothing_of_the_child():
    # No text twice, no exit handler twice, no signal handler of the program's in the child, no
    # faulthandler dump, no output of the child's.
    done = run_script(
        """
        import atexit, faulthandler, os, signal, sys
        from polyblocks.errors import NativeCrashError
        from polyblocks.isolation.isolation import run_isolated
        faulthandler.enable()
        atexit.register(lambda: print("bye"))
        signal.signal(signal.SIGTERM, lambda *_: print("handled", flush=True))
        sys.stdout.write("pending ")

        def crash():
            print("noise of the child " * 1000)
            import ctypes
            ctypes.string_at(0)

        try:
            run_isolated(crash)
        except NativeCrashError:
            pass
        try:
            run_isolated(lambda: os.kill(os.getpid(), signal.SIGTERM))
        except NativeCrashError as error:
            assert "SIGTERM" in str(error)
        """
    )
    assert done.stderr == ""
    assert done.stdout == "pending bye\n"


def test_works_with_standard_files_closed(tmp_path):
    done = run_script(
        f"""
        import os
        for fd in (0, 1, 2):
            os.close(fd)
        from polyblocks.isolation.isolation import run_isolated
        out = run_isolated(lambda: b"fine")
        with open({str(tmp_path / "out")!r}, "wb") as f:
            f.write(out)
        os._exit(0)
        """
    )
    assert done.returncode == 0
    assert (tmp_path / "out").read_bytes() == b"fine"


@pytest.mark.skipif(sys.platform != "linux", reason="the parent-death signal is Linux's")
def test_child_dies_with_a_killed_parent(tmp_path):
    marker = tmp_path / "pid"
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(
                f"""
                import os, time
                from polyblocks.isolation.isolation import run_isolated

                def job():
                    with open({str(marker)!r} + ".new", "w") as f:
                        f.write(str(os.getpid()))
                    os.rename({str(marker)!r} + ".new", {str(marker)!r})
                    time.sleep(60)

                run_isolated(job)
                """
            ),
        ]
    )
    deadline = time.monotonic() + 20
    while not marker.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    parent.kill()
    parent.wait()
    pid = int(marker.read_text())
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            break
        if state == "Z":  # waits for init to collect it
            break
        time.sleep(0.01)
    else:
        pytest.fail("the child outlived its parent")


def test_debug_log_has_the_childs_output(caplog):
    caplog.set_level("DEBUG", logger="polyblocks.isolation.isolation")
    run_isolated(lambda: os.write(2, b"a remark of a pass").to_bytes(4, "little"), label="blur")
    assert "blur: a remark of a pass" in caplog.text
