"""Isolation: run native compiler code in a forked child, so that its crash is only an error.

A lowering that dies by a signal must not take the user's program with it. A fork keeps all that
is imported and captured, and costs milliseconds where a fresh process costs seconds. The child
sends frames on a pipe: events and errors as JSON, the result as bytes; nothing is pickled.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import json
import logging
import math
import os
import select
import signal
import struct
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import ModuleType
from typing import IO, Any, NoReturn

from polyblocks import errors, events
from polyblocks.errors import (
    MachineError,
    NativeCrashError,
    OldSpellingWarning,
    PassError,
    PolyBlocksError,
    UnsupportedError,
    of_machine,
)
from polyblocks.events import Event
from polyblocks.isolation.forks import before, fork_lock
from polyblocks.isolation.frames import with_large_frame
from polyblocks.isolation.stall import StallWatch

resource: ModuleType | None
try:
    import resource
except ImportError:  # not a POSIX system; there is no os.fork either
    resource = None

logger = logging.getLogger(__name__)

#: Seconds after which a warning says which pass is running; again after twice the time.
SLOW_S = 60.0
#: A child that uses no CPU time for so long (seconds) is taken for blocked.
STALL_S = 60.0
#: Seconds that forks of the program wait for children of ours that end.
_ENDS_S = 2.0

_FRAME = struct.Struct("<cQ")
_EVENT, _WARNING, _RESULT, _ERROR = b"E", b"W", b"R", b"X"
_POLL_S = 0.1
_PIPE_BYTES = 1 << 20
_CRASH_SIGNALS = ("SIGSEGV", "SIGABRT", "SIGFPE", "SIGILL", "SIGBUS", "SIGTRAP", "SIGSYS")
_DEFAULT_SIGNALS = (*_CRASH_SIGNALS, "SIGINT", "SIGTERM", "SIGHUP", "SIGCHLD", "SIGALRM")
#: Lines of a dying process that say why; preferred to its last lines, which are a stack dump.
_TELLING = (
    "assert",
    "check failed",
    "llvm error",
    "fatal",
    "terminate called",
    "what():",
    "error:",
)

_PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

_child_initializers: list[Callable[[], None]] = []
_in_child = False
#: Threads that collect children that have reported.
_reapers: set[threading.Thread] = set()


def on_child_start(function: Callable[[], None]) -> Callable[[], None]:
    """Register ``function`` to run first in every isolated child; usable as a decorator.

    A framework's frontend puts things right here that do not survive a fork, such as its pool of
    threads.
    """
    if function not in _child_initializers:
        _child_initializers.append(function)
    return function


def is_isolated_child() -> bool:
    """Whether this process is a child made by :func:`run_isolated`."""
    return _in_child


@with_large_frame
def run_isolated(
    fn: Callable[[], bytes],
    *,
    emit: Callable[[Event], None] | None = None,
    timeout_s: float | None = None,
    stall_s: float | None = None,
    label: str = "",
) -> bytes:
    """Run ``fn`` in a forked child and return its bytes.

    Events that ``fn`` emits reach this thread's listeners and this process's sink as if they had
    been emitted here. Where there is no fork, inside a child, and with ``POLYBLOCKS_ISOLATE=0``
    (for debuggers), ``fn`` runs in this process, unprotected.

    Args:
        fn: the job; what it changes in memory is lost.
        emit: also receives the events.
        timeout_s: seconds after which the child is killed; None: what is left of
            :func:`limited`, if this thread is inside of that.
        stall_s: seconds without CPU time after which the child is taken for blocked; the caller
            handles :class:`StalledError`. None: :data:`STALL_S`, and then a second try.
        label: what is being done, for messages; the stage and pass are added when known.

    Raises:
        PolyBlocksError: the child raised one; the same class with the same fields.
        NativeCrashError: the child died by a signal.
        StalledError: the child used no CPU time for ``stall_s``, or, twice, for :data:`STALL_S`.
        MachineError: it was killed after ``timeout_s``, the child raised what says that the
            machine is to blame, see :func:`polyblocks.errors.of_machine`, or no process can be
            started.
        UnsupportedError: any other exception in the child, named with its message; the child's
            traceback is a note on it.
    """
    with events.listening(emit) if emit is not None else contextlib.nullcontext():
        if not can_isolate():
            return fn()
        deadline = _deadline.get() if timeout_s is None else time.monotonic() + timeout_s
        limit = _limit.get() if timeout_s is None else timeout_s
        patience = STALL_S if stall_s is None else stall_s
        try:
            with _scratch_file() as noise:
                return _Parent(fn, noise, deadline, limit, patience, label).run()
        except StalledError as error:
            if stall_s is not None:
                raise
            # The next fork finds other locks held, or none.
            logger.info("%s; trying once more", error)
            with _scratch_file() as noise:
                return _Parent(fn, noise, deadline, limit, patience, label).run()


def start_isolated(
    fn: Callable[[], bytes], emit: Callable[..., None], label: str = ""
) -> Callable[[], bytes]:
    """Fork a child as :func:`run_isolated` does, and go on.

    Args:
        fn: the job.
        emit: receives the events, as :func:`polyblocks.events.emit` does.
        label: of :func:`run_isolated`.

    Returns:
        A function to be called once, by any thread: waits for the child, and has its bytes or
        raises what :func:`run_isolated` does.
    """
    noise = _scratch_file()
    parent = _Parent(fn, noise, _deadline.get(), _limit.get(), STALL_S, label, emit)

    def finish() -> bytes:
        with noise:
            return parent.run()

    return finish


def can_isolate() -> bool:
    """Whether :func:`run_isolated` forks."""
    return hasattr(os, "fork") and not _in_child and os.environ.get("POLYBLOCKS_ISOLATE") != "0"


_deadline: ContextVar[float] = ContextVar("polyblocks_deadline", default=math.inf)
_limit: ContextVar[float] = ContextVar("polyblocks_limit", default=math.inf)


@contextlib.contextmanager
def limited(seconds: float | None) -> Iterator[None]:
    """Limit the total time that this thread isolates inside of the block, in seconds.

    A block inside of another one has what is left of that. None and 0 are no limit.
    """
    if not seconds or _deadline.get() != math.inf:
        yield
        return
    tokens = _deadline.set(time.monotonic() + seconds), _limit.set(seconds)
    try:
        yield
    finally:
        _deadline.reset(tokens[0])
        _limit.reset(tokens[1])


class StalledError(NativeCrashError):
    """The child waited for something that never came."""


def _scratch_file() -> IO[bytes]:
    if hasattr(os, "memfd_create"):  # works where no folder for temporary files can be written
        return open(os.memfd_create("polyblocks-output"), "w+b")
    return tempfile.TemporaryFile(prefix="polyblocks-")


class _Parent:
    """The parent's side of one isolated call."""

    def __init__(
        self,
        fn: Callable[[], bytes],
        noise: IO[bytes],
        deadline: float,
        limit: float,
        stall_s: float,
        label: str,
        emit: Callable[..., None] = events.emit,
    ) -> None:
        self.emit = emit
        self.noise = noise
        self.deadline = deadline
        self.limit = limit
        self.stall_s = stall_s
        self.label = label
        self.stage = ""
        self.pass_name = ""
        self.received = bytearray()
        self.result: bytes | None = None
        self.error: PolyBlocksError | None = None
        self.status: int | None = None  # as waitpid gives it
        self.reaped = False
        self.stalled = False
        # Under the lock no other child of ours inherits the write end, which would keep the
        # pipe open after this child's death.
        with fork_lock:
            self.pipe, write_end = os.pipe()
            try:
                _quiet_fork_warnings()
                parent = os.getpid()
                self.pid = os.fork()
                if self.pid == 0:
                    _child(fn, parent, write_end, noise.fileno())
            except OSError as error:
                os.close(self.pipe)
                raise MachineError(
                    f"no process can be started to compile in ({error}); free memory or "
                    "processes, or set POLYBLOCKS_ISOLATE=0 to compile in this process"
                ) from error
            finally:
                os.close(write_end)

    def run(self) -> bytes:
        """Relay events until the child is done; return its result or raise its error."""
        try:
            done = self._receive()
        except BaseException:  # KeyboardInterrupt, or an observer's exception
            self._kill()
            raise
        finally:
            os.close(self.pipe)
        if not done:
            self._kill()
            why = f"doing nothing for {self.stall_s:g} s" if self.stalled else f"{self.limit:g} s"
            text = f"the compiler was stopped after {why}{self._where()}{self._last_words()}"
            if self.stalled:
                raise _transient(StalledError(text))
            raise MachineError(
                f"{text}; the option 'compile_timeout' or POLYBLOCKS_COMPILE_TIMEOUT gives it more "
                "time (seconds; 0: no limit)"
            )
        if self.error is None and self.result is None:
            self._reap_crashed()
            crash = NativeCrashError(
                f"the compiler {self._cause()}{self._where()}{self._last_words()}"
            )
            raise crash if self._crashed_by_itself() else _transient(crash)
        self._reap_reported()
        if self.error is not None:
            raise self.error
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s: %s", self.label, self._noise_text())
        assert self.result is not None
        return self.result

    def _receive(self) -> bool:
        """Read frames until a result, an error or the end; False if it never came."""
        watch = StallWatch(self.pid, self.stall_s)
        begin, patience = time.monotonic(), SLOW_S
        poll = select.poll()
        poll.register(self.pipe, select.POLLIN)
        child_dead = False
        while self.result is None and self.error is None:
            now = time.monotonic()
            left = self.deadline - now
            if left <= 0:
                return False
            if now - begin > patience:
                logger.warning("compiling takes %.0f s so far%s", now - begin, self._where())
                patience *= 2
            if poll.poll(min(left, _POLL_S) * 1000):
                data = os.read(self.pipe, _PIPE_BYTES)
                if not data:
                    return True
                self.received += data
                self._take_frames()
            elif child_dead:
                # Dead and the pipe is dry, but some other process (forked by another thread of
                # the user's) holds the write end: its end of file would never come.
                return True
            else:
                child_dead = self._reap(block=False)
                if not child_dead and watch.has_stalled():
                    self.stalled = True
                    return False
        return True

    def _take_frames(self) -> None:
        while len(self.received) >= _FRAME.size:
            kind, size = _FRAME.unpack_from(self.received)
            end = _FRAME.size + size
            if len(self.received) < end:
                return
            body = bytes(memoryview(self.received)[_FRAME.size : end])
            del self.received[:end]
            if kind == _RESULT:
                self.result = body
            elif kind == _ERROR:
                self.error = _rebuild_error(json.loads(body))
            elif kind == _WARNING:
                message, filename, lineno = json.loads(body)
                warnings.warn_explicit(message, OldSpellingWarning, filename, lineno)
            else:
                self._relay(json.loads(body))

    def _relay(self, record: dict[str, Any]) -> None:
        if record["kind"] == "stage-begin":
            self.stage, self.pass_name = record["data"].get("stage", ""), ""
        elif record["kind"] == "pass-begin":
            self.pass_name = record["data"].get("name", "")
        self.emit(record["kind"], **record["data"])

    def _reap(self, *, block: bool) -> bool:
        """Collect the child's exit status; True when it is gone."""
        if not self.reaped:
            try:
                pid, status = os.waitpid(self.pid, 0 if block else os.WNOHANG)
            except ChildProcessError:
                # The program ignores SIGCHLD, or waits for any child: the status is lost.
                self.reaped = True
            else:
                if pid == self.pid:
                    self.reaped, self.status = True, status
        return self.reaped

    def _reap_reported(self) -> None:
        """Collect a child that has reported; its memory takes milliseconds to free."""
        thread = threading.Thread(target=self._reap_beside, daemon=True)
        _reapers.add(thread)
        try:
            thread.start()
        except RuntimeError:  # no thread can be started
            _reapers.discard(thread)
            self._reap(block=True)

    def _reap_beside(self) -> None:
        try:
            self._reap(block=True)
        finally:
            _reapers.discard(threading.current_thread())

    def _reap_crashed(self) -> None:
        # Normally dead already. A job that closed the pipe and lives on is killed.
        deadline = time.monotonic() + 2
        while not self._reap(block=False) and time.monotonic() < deadline:
            time.sleep(0.001)
        self._kill()

    def _kill(self) -> None:
        if not self._reap(block=False):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._reap(block=True)

    def _cause(self) -> str:
        if self.status is None:
            return "crashed (signal unknown, since this program does not let others wait)"
        code = os.waitstatus_to_exitcode(self.status)
        if code >= 0:
            return f"left with exit status {code} and no result"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        hint = ", perhaps out of memory" if name == "SIGKILL" else ""
        return f"crashed ({name}: {signal.strsignal(-code)}{hint})"

    def _crashed_by_itself(self) -> bool:
        if self.status is None:
            return True
        code = os.waitstatus_to_exitcode(self.status)
        return code >= 0 or -code in {getattr(signal, name) for name in _CRASH_SIGNALS}

    def _where(self) -> str:
        place = f" in pass '{self.pass_name}'" if self.pass_name else ""
        place += f" of stage {self.stage}" if self.stage else ""
        place += f" while compiling '{self.label}'" if self.label else ""
        return place

    def _noise_text(self) -> str:
        size = self.noise.seek(0, os.SEEK_END)
        self.noise.seek(max(0, size - 16384))
        return self.noise.read().decode(errors="replace")

    def _last_words(self) -> str:
        lines = [line.strip() for line in self._noise_text().splitlines() if line.strip()]
        telling = [line for line in lines if any(word in line.lower() for word in _TELLING)]
        words = " | ".join((telling or lines)[-3:])
        return f"; its last output: {words[:400]}" if words else ""


@before
def _wait_for_reapers() -> None:
    # A program that has one child may wait for any, and would be told of ours.
    end = time.monotonic() + _ENDS_S
    for thread in list(_reapers):
        if thread.is_alive():
            thread.join(max(0.0, end - time.monotonic()))


def _transient(error: UnsupportedError) -> UnsupportedError:
    error.transient = True
    return error


_warning_filter: tuple[Any, ...] | None = None


def _quiet_fork_warnings() -> None:
    # Python and some frameworks warn about a fork with threads. This child touches nothing that
    # another thread may hold: native code is kept out by the lock, Python's own locks are reset
    # by Python. Limited to this module, so that the user's own forks still warn.
    global _warning_filter
    if _warning_filter is None or _warning_filter not in warnings.filters:
        warnings.filterwarnings("ignore", module=__name__.replace(".", r"\.") + "$")
        _warning_filter = warnings.filters[0]


# --- the child -----------------------------------------------------------------------------------


def _child(fn: Callable[[], bytes], parent: int, pipe: int, noise: int) -> NoReturn:
    """Run ``fn``, report, leave. Nothing of the parent's is flushed, closed or finalized."""
    status = 1
    try:
        while pipe <= 2:  # the parent has closed its standard files; they are replaced now
            pipe = os.dup(pipe)
        _become_child(parent, noise)

        held = bytearray()

        def hold(kind: bytes, body: bytes) -> None:
            held.extend(_FRAME.pack(kind, len(body)))
            held.extend(body)

        def send(kind: bytes, body: bytes) -> None:
            hold(kind, body)
            rest = memoryview(bytes(held))
            held.clear()
            while rest:
                rest = rest[os.write(pipe, rest) :]

        def relay(event: Event) -> None:
            record = {"kind": event.kind, "data": event.data}
            # Where it is must be known if it crashes; a pass's end and its many decisions follow
            # with the next pass. Each write wakes the parent: 10 % of the time of long programs,
            # and 5 % of that of the shortest.
            waits = event.kind in ("decision", "pass-end") and len(held) < _PIPE_BYTES
            (hold if waits else send)(_EVENT, json.dumps(record, default=str).encode())

        def warn(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: Any = None,
            line: str | None = None,
        ) -> None:
            del file, line
            # Those of libraries are not about the user's code.
            if issubclass(category, OldSpellingWarning):
                send(_WARNING, json.dumps((str(message), filename, lineno)).encode())

        try:
            events.redirect(relay)
            warnings.showwarning = warn
            for function in _child_initializers:
                function()
            result = fn()
            if not isinstance(result, bytes):
                raise TypeError(f"an isolated job returns bytes, not {type(result).__name__}")
            send(_RESULT, result)
        except BaseException as error:
            send(_ERROR, json.dumps(_error_record(error), default=str).encode())
        status = 0
    except BaseException:  # the parent is gone, or there is no memory left for a report
        pass
    finally:
        os._exit(status)


def _become_child(parent: int, noise: int) -> None:
    global _in_child
    _in_child = True
    for name in _DEFAULT_SIGNALS:  # a handler of the user's must not run here
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    faulthandler.disable()
    _die_quietly(parent)
    _forget_depth()
    os.dup2(noise, 1)
    os.dup2(noise, 2)
    # New objects: the old ones hold text of the parent's that would be written twice.
    sys.stdin = open(os.devnull)  # noqa: SIM115 - these live as long as the process
    sys.stdout = open(1, "w", buffering=1, closefd=False, errors="replace")  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False, errors="replace")  # noqa: SIM115
    gc.freeze()  # finalizers of the parent's garbage belong to the parent
    # Nothing here lives long enough to be worth a collection.
    gc.disable()


def _forget_depth() -> None:
    """Let as many calls be nested here as if the program had not nested any yet.

    Else it would depend on where a function is first called whether it can be compiled.
    """
    depth, frame = 0, sys._getframe().f_back
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    sys.setrecursionlimit(sys.getrecursionlimit() + depth)


def _die_quietly(parent: int) -> None:
    """No core file, and no life after the parent's (on Linux; elsewhere EPIPE ends it)."""
    if resource is not None:
        # One byte, not none: that also stops dumps that go to a program (Linux core(5)).
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (1 if hard else 0, hard))
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before that call
            os._exit(1)


def _error_record(error: BaseException) -> dict[str, Any]:
    if isinstance(error, (PassError, UnsupportedError)) or not isinstance(error, PolyBlocksError):
        error = of_machine(error) or error
    if isinstance(error, PolyBlocksError):
        # A plugin's own subclass crosses as its nearest base of ours.
        known = next(c for c in type(error).__mro__ if c.__module__ == errors.__name__)
        record = {"class": known.__name__, "message": str(error), "fields": vars(error)}
        if error.__cause__ is not None:
            record["traceback"] = "".join(traceback.format_exception(error))
        return record
    reason = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    fields: dict[str, Any] = {"reason": reason, "op": None, "location": None}
    return {
        "class": "UnsupportedError",
        "message": reason,
        "fields": fields,
        "traceback": "".join(traceback.format_exception(error)),
    }


def _rebuild_error(record: dict[str, Any]) -> PolyBlocksError:
    cls: type[PolyBlocksError] = getattr(errors, record["class"])
    error = cls.__new__(cls, record["message"])
    error.__dict__.update(record["fields"])
    if "traceback" in record:
        error.add_note("In the isolated process:\n" + record["traceback"])
    return error
