"""The inline cache of one decorated function: the tables that its machine code reads."""

from __future__ import annotations

import ctypes
import functools
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import torch
from torch._C._dynamo.guards import GlobalStateGuard

from polyblocks.runtime.native import native_code
from polyblocks.runtime.native.builtin import builtin
from polyblocks.runtime.native.call import address_of, is_sound, python_functions
from polyblocks.runtime.native.tables import words
from polyblocks_torch.inline_cache import code as cache_code
from polyblocks_torch.inline_cache.guard_tree import Fact, GuardTree, Unknown, is_constant
from polyblocks_torch.inline_cache.settings import Setting, current_settings
from polyblocks_torch.inline_cache.targets import target_of
from polyblocks_torch.inline_cache.thread_keys import keys_of_threads, thread_keys
from polyblocks_torch.launch import tensor_layout

#: Entries that are compared one after another.
MOST_ENTRIES = 8
#: Tensors that are compared with each other where none may be passed twice.
_MOST_DISTINCT = 24

_FUNCTIONS = {
    "get_modes": ("torch_cpu", "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv"),
    "requires_grad": ("c10", "_ZNK3c1010TensorImpl13requires_gradEv"),
}
_LIBRARIES = {library for library, _ in _FUNCTIONS.values()}
_Table: Any = words("CacheTable", cache_code.TABLE)
_Entry: Any = words("CacheEntry", cache_code.ENTRY)
_Argument: Any = words("CachedArgument", cache_code.ARGUMENT)
_Word: Any = words("CachedWord", cache_code.WORD)
_Setting: Any = words("CachedSetting", cache_code.SETTING)
_Fact: Any = words("CachedFact", cache_code.FACT)
_POINTER = ctypes.c_void_p
_MATCHES = ctypes.PYFUNCTYPE(ctypes.c_int32, _POINTER, _POINTER, _POINTER, ctypes.c_int64)
_log = logging.getLogger(__name__)


class _Remembered(NamedTuple):
    """An entry, and what it points to.

    Attributes:
        guards: Dynamo's, of the code that it calls.
        entry: a structure.
        alive: is kept as long as that.
    """

    guards: Any
    entry: Any
    alive: Any


class InlineCache:
    """Earlier calls of one function: kinds of their arguments, and the code that they ran.

    Attributes:
        call: a builtin function of the arguments of a call.

    Args:
        function: the user's.
        slow: is called with what is like none of the entries.
        facts: what must be so for any of them.
        functions: addresses of the machine code.
    """

    def __init__(
        self,
        function: FunctionType,
        slow: Callable[..., Any],
        facts: Sequence[Fact],
        functions: dict[str, int],
    ) -> None:
        self._function, self._facts = function, tuple(facts)
        self._entries: list[_Remembered] = []
        self._matches = _MATCHES(functions[cache_code.MATCHES])
        table = self._table = _Table()
        for name, value in (_of_pytorch() | python_functions()).items():
            if name in cache_code.TABLE:
                setattr(table, name, value)
        table.slow, table.true, table.version = id(slow), id(True), version_offset()
        for name in ("PyDict_GetItem", "PyErr_Clear"):
            setattr(table, name, address_of(getattr(ctypes.pythonapi, name)))
        table.kept = slow
        self.call = builtin(function.__name__, functions[cache_code.CALL], table)

    def remember(
        self,
        guards: Any,
        values: dict[str, Any],
        arguments: tuple[Any, ...],
        function: FunctionType,
    ) -> bool:
        """Add an entry for calls like one for which the guards hold.

        Args:
            guards: Dynamo's.
            values: variables of the frame.
            arguments: of the call, which has no keyword arguments.
            function: Dynamo's code, as ``GuardedCalls`` gives it.

        Returns:
            Whether there can be entries for these guards.
        """
        try:
            tree = GuardTree(guards.root, self._function, arguments)
            made = self._entry(guards, tree, arguments, function)
        except (Unknown, AttributeError, RuntimeError, TypeError) as error:
            _log.debug("calls are not cached: %s", error)
            return False
        # Another thread may have changed something in between: the guards hold for the entry.
        if (
            guards.check(values)
            and guards.cache_entry is not None
            and self._is_like(made, arguments)
        ):
            kept = [each for each in self._entries if each.guards.cache_entry is not None]
            self._publish([made, *kept][:MOST_ENTRIES])
        return True

    def _is_like(self, made: _Remembered, arguments: tuple[Any, ...]) -> bool:
        given = (ctypes.c_void_p * max(len(arguments), 1))(*map(id, arguments))
        table = ctypes.addressof(self._table)
        return bool(self._matches(table, ctypes.addressof(made.entry), given, len(arguments)))

    def _publish(self, entries: list[_Remembered]) -> None:
        made = (_Entry * len(entries))(*(each.entry for each in entries))
        table = self._table
        # The machine code runs between two instructions of Python, so it must see both or none.
        table.entry_count = 0
        table.entries = ctypes.addressof(made)
        before = self._entries, getattr(table, "entries_kept", None)
        self._entries = entries
        table.entries_kept = entries, made
        table.entry_count = len(entries)
        del before

    def _entry(
        self, guards: Any, tree: GuardTree, arguments: tuple[Any, ...], function: FunctionType
    ) -> _Remembered:
        if not _is_ordinary():
            raise Unknown("modes or transforms")
        state, settings = GlobalStateGuard().check, current_settings()
        included, excluded = thread_keys()
        facts = [*self._facts, Fact(vars(guards), "cache_entry", None, differs=True), *tree.facts]
        rows, alive = _rows(arguments)
        tensors = sum(isinstance(each, torch.Tensor) for each in arguments)
        if tree.distinct and tensors > _MOST_DISTINCT:
            raise Unknown("many tensors")
        target = target_of(function, function.graph_name, function.graph, len(arguments))  # type: ignore[attr-defined]
        picks = target.picks or ()
        tables = {
            "arguments": rows,
            "facts": _facts_table(facts),
            "settings": _settings_table(settings or ()),
            "picks": (ctypes.c_int64 * max(len(picks), 1))(*picks),
        }
        entry = _Entry(
            count=len(arguments),
            distinct=tree.distinct,
            fact_count=len(facts),
            included=included,
            excluded=excluded,
            setting_count=len(settings or ()),
            state=id(state) if settings is None else 0,
            argument=target.argument,
            target=id(target.target),
            function=target.function,
            pick_count=len(picks),
            unwraps=target.unwraps,
            **{name: ctypes.addressof(table) for name, table in tables.items()},
        )
        if target.picks is None:
            entry.picks = 0
        return _Remembered(guards, entry, (tables, alive, facts, state, target, function))


def inline_cache(
    function: FunctionType, slow: Callable[..., Any], facts: Sequence[Fact]
) -> InlineCache | None:
    """The inline cache of a function; None where there can be none. See :class:`InlineCache`."""
    if not _of_pytorch() or tensor_layout.layout() is None or not is_sound(_Table()):
        return None
    functions = native_code.place(cache_code.cache_text(), cache_code.CALL, cache_code.MATCHES)
    return None if functions is None else InlineCache(function, slow, facts, functions)


@functools.cache
def _of_pytorch() -> dict[str, int]:
    """Fields of the table about PyTorch's libraries; none if something is not there."""
    folder = Path(torch.__file__).parent / "lib"
    try:
        libraries = {name: ctypes.CDLL(str(folder / f"lib{name}.so")) for name in _LIBRARIES}
        values = {
            field: address_of(getattr(libraries[library], name))
            for field, (library, name) in _FUNCTIONS.items()
        }
        return values | keys_of_threads(libraries["c10"])
    except (AttributeError, OSError, ValueError):
        return {}


def _is_ordinary() -> bool:
    """Whether nothing sees the operations of this thread."""
    return (
        not torch._C._len_torch_dispatch_stack()
        and torch._C._functorch.peek_interpreter_stack() is None
        and not torch._C._is_tracing()
    )


def _rows(arguments: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """``code.ARGUMENT`` of each argument, and what these point to."""
    rows, alive = [], []
    for each in arguments:
        if type(each) in (torch.Tensor, torch.nn.Parameter):
            found, required = _words_of(each), each.requires_grad
            if required and torch.is_grad_enabled():
                raise Unknown("gradients")
            alive.append(found)
            rows.append(
                _Argument(
                    type=id(type(each)),
                    words=ctypes.addressof(found),
                    word_count=len(found),
                    requires_grad=required,
                )
            )
        elif is_constant(each):
            alive.append(each)
            rows.append(_Argument(object=id(each)))
        else:
            raise Unknown(type(each).__name__)
    return (_Argument * max(len(rows), 1))(*rows), alive


def _words_of(tensor: torch.Tensor) -> Any:
    offsets = tensor_layout.kind_offsets(tensor.dim())
    if offsets is None:
        raise Unknown("the layout of a tensor")
    place = tensor._cdata
    found = [(at, ctypes.c_uint64.from_address(place + at).value) for at in offsets]
    return (_Word * len(found))(*(_Word(*each) for each in found))


def _settings_table(settings: Sequence[Setting]) -> Any:
    return (_Setting * max(len(settings), 1))(*(_Setting(*each) for each in settings))


@functools.cache
def version_offset() -> int:
    """Where a dict has a word that each change makes a new one (PEP 509); 0: nowhere."""
    if sys.version_info >= (3, 13):
        return 0
    offset, some, seen = 24, {"a": 0}, set()
    word = ctypes.c_uint64.from_address(id(some) + offset)
    for change in (lambda: some.update(a=1), lambda: some.update(b=1), lambda: some.pop("a")):
        seen.add(word.value)
        change()
    seen.add(word.value)
    return offset if len(seen) == 4 else 0


def _facts_table(facts: Sequence[Fact]) -> Any:
    rows = [
        _Fact(
            of=fact.of if fact.key is None else id(fact.of),
            key=0 if fact.key is None else id(fact.key),
            value=fact.value if fact.is_number else id(fact.value),
            differs=fact.differs,
        )
        for fact in facts
    ]
    return (_Fact * max(len(rows), 1))(*rows)
