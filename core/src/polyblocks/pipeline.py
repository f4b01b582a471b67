"""Pipeline: named, ordered passes in stages, with dumps, verification and reproducers."""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from polyblocks import events
from polyblocks.attributes import RESUME_ATTRIBUTE
from polyblocks.failures.attribution import attribute_failure
from polyblocks.options import CompileOptions
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass
from polyblocks.passes.rules import RulePass, rules_of, steps
from polyblocks.stages import STAGES, mark
from polyblocks.target import TargetDescription

if TYPE_CHECKING:
    from polyblocks.affine.mlir.nest_cache import NestCache

#: Name of the step that writes the nests, in tables of times.
WRITE_NESTS = "write-nests"


@dataclass
class PassContext:
    """The context of a pass besides the module.

    Attributes:
        target: the description of the chip.
        options: the checked options.
        dump_folder: where dumps go; None: no dumps.
        dump_passes: dump after every pass, not only after every stage.
        verify: verify the module after Python passes, before upstream's next one and at the end of
            a stage. Output of upstream's passes is verified in any case, together with that of
            the Python passes behind them.
        verify_nests: check the nests that a pass changed behind it, and all of them before the
            module is written.
        hold: passes on nests share one model, and the module is written when a pass or dump
            wants to see it; with False every pass reads the module and writes it.
    """

    target: TargetDescription
    options: CompileOptions
    dump_folder: Path | None = None
    dump_passes: bool = False
    verify: bool = True
    verify_nests: bool = False
    hold: bool = True
    _dump_count: int = field(default=0, repr=False)
    _nests: NestCache | None = field(default=None, repr=False)

    @classmethod
    def create(
        cls, target: TargetDescription, options: CompileOptions, name: str = "main"
    ) -> PassContext:
        """Make a context; ``options.debug`` or ``POLYBLOCKS_DEBUG`` names the dump folder.

        ``POLYBLOCKS_DEBUG_PASSES=1`` dumps after every pass, ``POLYBLOCKS_VERIFY=1`` checks nests
        behind the passes that change them. Inside :meth:`active` (that is, in ``lower_program``)
        it is the context of the stages before, so that dumps count on.
        """
        running = _active.get()
        if running is not None:
            return running
        requested: bool | str = options.debug or os.environ.get("POLYBLOCKS_DEBUG", "")
        folder = None
        if requested:
            plain = requested is True or requested == "1"
            folder = _fresh_folder(Path("polyblocks_debug" if plain else str(requested)), name)
        passes, verify = (
            os.environ.get(f"POLYBLOCKS_{name}", "") not in ("", "0")
            for name in ("DEBUG_PASSES", "VERIFY")
        )
        return cls(target, options, folder, passes, verify_nests=verify)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make :meth:`create` return this context inside the block."""
        token = _active.set(self)
        try:
            yield
        finally:
            _active.reset(token)

    @property
    def holds_nests(self) -> bool:
        """Whether a model of the nests is held, which may be ahead of the module."""
        return self._nests is not None

    def nests(self, module: Any) -> NestCache:
        """The model of the module's nests, read unless it is held already."""
        from polyblocks.affine.mlir.nest_cache import NestCache

        if self._nests is None:
            self._nests = NestCache(module)
        return self._nests

    def flush(self) -> None:
        """Make the module say what the model says; the model stays."""
        if self._nests is None:
            return
        if self.verify_nests:
            self._nests.verify()
        if self._nests.write() and self.verify:
            self._nests.module.operation.verify()

    def release(self) -> None:
        """Flush and forget the model, before other code changes the module."""
        try:
            self.flush()
        finally:
            self._nests = None

    def decide(self, pass_name: str, nest: str, what: str, **numbers: Any) -> None:
        """Report a decision with its numbers, for ``explain``."""
        events.emit("decision", **{"pass": pass_name, "nest": nest, "what": what, **numbers})

    def dump(self, module: Any, label: str, done: str | None = None) -> None:
        """Write the module into the dump folder, numbered, marked as far as ``done``."""
        if self.dump_folder is None:
            return
        if done is not None:
            mark(module, done)
        path = self.dump_folder / f"{self._dump_count:02d}-{label}.mlir"
        self._dump_count += 1
        text = module.operation.get_asm(enable_debug_info=True)
        path.write_text(text + "\n")
        if done is not None:
            # Only files are marked: a live module would skip the rest of its stage.
            mark(module, None)


_active: ContextVar[PassContext | None] = ContextVar("polyblocks_pass_context", default=None)

#: ``watcher(stage, pass, module)``; the pass is empty at the end of a stage.
Watcher = Callable[[str, str, Any], None]
_watchers: ContextVar[tuple[Watcher, ...]] = ContextVar("polyblocks_watchers", default=())


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Show the module to ``watcher`` after every pass and stage that this thread runs inside.

    An exception of the watcher ends the compilation.
    """
    token = _watchers.set((*_watchers.get(), watcher))
    try:
        yield
    finally:
        _watchers.reset(token)


@runtime_checkable
class Pass(Protocol):
    """One named step: changes the module in place and leaves it valid.

    It may say what it ``needs``, ``establishes`` and ``breaks``: sets of names of
    :mod:`polyblocks.passes.facts`.
    """

    name: ClassVar[str]

    def run(self, module: Any, context: PassContext) -> bool | None:
        """Transform ``module`` (an ``mlir.ir.Module``); False says that nothing was changed."""


@dataclass(frozen=True)
class UpstreamPass:
    """A textual pipeline of upstream MLIR passes under one name."""

    name: str
    textual: str
    needs: frozenset[str] = frozenset()
    establishes: frozenset[str] = frozenset()
    breaks: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Add the facts that passes of upstream break."""
        words = set(re.findall(r"[\w-]+", self.textual))
        found = (names for word, names in facts.UPSTREAM_BREAKS.items() if word in words)
        object.__setattr__(self, "breaks", frozenset(self.breaks).union(*found))

    def run(self, module: Any, context: PassContext) -> None:
        """Run the textual pipeline on the module; the caller verifies it."""
        from polyblocks import mlir

        del context
        mlir.run_textual(module, self.textual, verify=False)


@dataclass(frozen=True)
class FunctionPass:
    """A plain function ``f(module, context)`` as a pass."""

    name: str
    function: Callable[[Any, PassContext], bool | None]
    needs: frozenset[str] = frozenset()
    establishes: frozenset[str] = frozenset()
    breaks: frozenset[str] = frozenset()

    def run(self, module: Any, context: PassContext) -> bool | None:
        """Call the function."""
        return self.function(module, context)


class Pipeline:
    """Ordered passes of stages, to be changed by name and run.

    Example::

        pipeline.insert_after("normalize-nests", MyPass())
        pipeline.remove("fuse-slices")

    After every change the order is checked: what a pass needs must hold where it stands (see
    :mod:`polyblocks.passes.facts`). Changes that are right together only go into one
    :meth:`editing` block. A rule of a :class:`~polyblocks.passes.rules.RulePass` is removed and
    replaced by its name; what is inserted before or after it goes before or after the whole pass.

    Raises:
        ValueError: of every method that changes it, when the order is wrong; the pipeline is as it
            was before then.
    """

    def __init__(self, stages: Mapping[str, Sequence[Any]]) -> None:
        self._stages: dict[str, list[Any]] = {name: list(p) for name, p in stages.items()}
        names = [name for passes in self._stages.values() for p in passes for name in _names(p)]
        doubles = {n for n in names if names.count(n) > 1}
        if doubles:
            raise ValueError(f"pass names must be unique; twice: {', '.join(sorted(doubles))}")
        self._former: list[Any] = []
        self._open = False
        self._check([])

    @property
    def stages(self) -> Mapping[str, tuple[Any, ...]]:
        """The passes of every stage, in order, to look at: what changes them checks the order."""
        return MappingProxyType({name: tuple(passes) for name, passes in self._stages.items()})

    @contextmanager
    def editing(self) -> Iterator[None]:
        """Check the order once, at the end of the block; an error undoes what the block did."""
        before = {name: list(passes) for name, passes in self._stages.items()}
        outer, self._open = self._open, True
        try:
            yield
            if not outer:
                self._check([p for passes in before.values() for p in passes])
        except BaseException:
            self._stages.clear()
            self._stages.update(before)
            raise
        finally:
            self._open = outer

    def _check(self, before: list[Any]) -> None:
        """Check the order, with the passes that there were before."""
        passes = [(stage, p) for stage, members in self._stages.items() for p in steps(members)]
        present = {id(p) for _, p in passes}
        self._former = [p for p in (*self._former, *steps(before)) if id(p) not in present]
        facts.check(passes, self._former)

    def names(self) -> list[str]:
        """All pass names in order."""
        return [p.name for passes in self._stages.values() for p in passes]

    def steps(self) -> list[str]:
        """Names of all that runs, in order: as :meth:`names`, with rules for passes of rules."""
        return [p.name for passes in self._stages.values() for p in steps(passes)]

    def insert_before(self, name: str, new: Any) -> None:
        """Insert ``new`` before the pass called ``name``."""
        stage, index = self._find(name)
        self._insert(stage, index, new)

    def insert_after(self, name: str, new: Any) -> None:
        """Insert ``new`` after the pass called ``name``."""
        stage, index = self._find(name)
        self._insert(stage, index + 1, new)

    def append(self, stage: str, new: Any) -> None:
        """Add ``new`` at the end of a stage."""
        if stage not in self._stages:
            raise ValueError(f"no stage '{stage}'; the stages are {', '.join(self._stages)}")
        self._insert(stage, len(self._stages[stage]), new)

    def replace(self, name: str, new: Any) -> None:
        """Replace the pass or rule called ``name`` by ``new``; a rule by a pass on nests.

        Raises:
            ValueError: ``new`` is no pass on nests, or another pass has its name.
        """
        with self.editing():
            stage, index = self._find(name)
            whole = self._stages[stage][index]
            if whole.name == name:
                del self._stages[stage][index]
                self._insert(stage, index, new)
                return
            if not shares_nests(new):
                raise ValueError(
                    f"'{name}' is a rule of pass '{whole.name}': expected a NestPass in its "
                    f"place, got {type(new).__name__}"
                )
            rules = tuple(new if rule.name == name else rule for rule in whole.rules)
            if new.name != name:
                self._refuse_double(new.name)
            self._stages[stage][index] = replace(whole, rules=rules)

    def remove(self, name: str) -> None:
        """Take the pass or rule called ``name`` out; with its last rule a pass goes as well."""
        with self.editing():
            stage, index = self._find(name)
            whole = self._stages[stage][index]
            left = tuple(rule for rule in rules_of(whole) if rule.name != name)
            if whole.name == name or not left:
                del self._stages[stage][index]
            else:
                self._stages[stage][index] = replace(whole, rules=left)

    def _insert(self, stage: str, index: int, new: Any) -> None:
        for name in _names(new):
            self._refuse_double(name)
        with self.editing():
            self._stages[stage].insert(index, new)

    def _refuse_double(self, name: str) -> None:
        if any(name in _names(p) for passes in self._stages.values() for p in passes):
            raise ValueError(f"there is a pass '{name}' already; use replace()")

    def _find(self, name: str) -> tuple[str, int]:
        for stage, passes in self._stages.items():
            for index, p in enumerate(passes):
                if name in _names(p):
                    return stage, index
        raise ValueError(f"no pass '{name}'; the passes are {', '.join(self.names())}")

    def run(self, module: Any, context: PassContext) -> None:
        """Run all stages, or what is left of them for a module that was read from a dump."""
        for stage, passes in self._stages.items():
            run_stage(stage, passes, module, context)


def _names(p: Any) -> list[str]:
    """Names by which a pass is found: its own, and those of its rules."""
    return list(dict.fromkeys([p.name, *(rule.name for rule in rules_of(p))]))


def run_stage(stage: str, passes: Iterable[Any], module: Any, context: PassContext) -> None:
    """Run the passes of one stage on ``module`` in place, with events, dumps and verification.

    A module that was read from a dump resumes after what its ``polyblocks.done`` attribute names.

    Raises:
        PassError: a pass failed or left an invalid module; names it and its reproducer.
        ValueError: the pass to resume after is not one of this stage.
    """
    todo = _remaining(stage, list(passes), module)
    if todo is None:
        return
    events.emit("stage-begin", stage=stage)
    begin = time.perf_counter()
    # One snapshot per stage is cheap; the state right before a failing pass is made from it.
    snapshot = bytecode(module)
    finished: list[Any] = []
    blame = partial(attribute_failure, snapshot, stage, finished, context)
    verified = True
    for p in todo:
        if not shares_nests(p):
            with blame():
                _write_nests(stage, context)
        ours = finished and not isinstance(finished[-1], UpstreamPass)
        if ours and not verified and isinstance(p, UpstreamPass):
            with blame():
                module.operation.verify()
            verified = True
        with blame(p, verified=verified):
            if _run_pass(stage, p, module, context):
                # Upstream's passes in a row and all Python passes behind them together, unless
                # a watcher looks: verifying takes as long as many passes do.
                verified = context.dump_passes or bool(_watchers.get())
                if verified:
                    module.operation.verify()
        finished.append(p)
        if context.dump_folder is not None and context.dump_passes:
            with blame():
                context.flush()
            context.dump(module, f"{stage}-{p.name}", done=f"{stage}:{p.name}")
        for watcher in _watchers.get():
            with blame():
                context.flush()
            watcher(stage, p.name, module)
    with blame():
        _write_nests(stage, context)
        if not verified:
            module.operation.verify()
    if context.dump_folder is not None:
        context.dump(module, f"{stage}-{STAGES[stage]}", done=stage)
    for watcher in _watchers.get():
        watcher(stage, "", module)
    events.emit("stage-end", stage=stage, seconds=time.perf_counter() - begin)


def _run_pass(stage: str, p: Any, module: Any, context: PassContext) -> bool:
    """Run a pass; whether the module needs verification after it."""
    with events.timed_pass(stage, p.name):
        if shares_nests(p):
            if type(p).prepare is not NestPass.prepare:
                context.release()
                p.prepare(module)
            nests = context.nests(module)
            nests.apply(p.transform, context)
            if context.verify_nests:
                nests.verify(again=False)
            if not context.hold:
                context.release()
            return False
        changed = p.run(module, context) is not False
        return changed and (context.verify or isinstance(p, UpstreamPass))


def shares_nests(p: Any) -> bool:
    """Whether a pass works on the model of the nests alone, so that the next one can go on."""
    return isinstance(p, NestPass) and type(p).run is NestPass.run


def _write_nests(stage: str, context: PassContext) -> None:
    """Write what passes on nests did; this shows as a pass of its own."""
    if context.holds_nests:
        with events.timed_pass(stage, WRITE_NESTS):
            context.release()


def bytecode(module: Any) -> bytes:
    """The module as MLIR bytecode."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def _remaining(stage: str, passes: list[Any], module: Any) -> list[Any] | None:
    """The steps of a stage that the module has not been through; None for nothing to do."""
    attributes = module.operation.attributes
    if RESUME_ATTRIBUTE not in attributes:
        return list(steps(passes))
    done_stage, _, done_pass = attributes[RESUME_ATTRIBUTE].value.partition(":")
    order = list(STAGES)
    if done_stage not in order:
        raise ValueError(f"no stage '{done_stage}' to resume after; there are {', '.join(order)}")
    if order.index(done_stage) < order.index(stage):
        mark(module, None)
        return list(steps(passes))
    if order.index(done_stage) > order.index(stage) or not done_pass:
        return None
    names = [p.name for p in steps(passes)]
    last = {p.name: rules_of(p)[-1].name for p in passes if isinstance(p, RulePass)}
    done_pass = last.get(done_pass, done_pass)
    if done_pass not in names:
        raise ValueError(
            f"no pass '{done_pass}' in stage {stage} to resume after; there are {', '.join(names)}"
        )
    mark(module, None)
    return list(steps(passes))[names.index(done_pass) + 1 :]


def _fresh_folder(base: Path, name: str) -> Path:
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name) or "main"
    for number in range(10_000):
        folder = base / (safe if number == 0 else f"{safe}.{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        return folder
    raise OSError(f"no free folder for dumps below {base}")
