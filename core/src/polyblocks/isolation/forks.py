"""Forks of the user's process: what no fork may split, and what a child has to put right.

A fork copies the memory and only the thread that forks. A lock that another thread held stays
locked in the child forever, and what that thread was changing stays half changed. Three rules,
and nothing else in PolyBlocks registers with :func:`os.register_at_fork`:

- Most locks are made by :func:`lock` or :func:`rlock` and are free in a child. Nothing is done
  before a fork for them: a fork takes no lock of a data structure, so that forks of several threads
  cannot wait for each other, nor one for a lock that its own thread holds. Functions of
  :func:`before` wait for threads that take none.
- Data that would be inconsistent is put right by a function registered with :func:`in_child`.
- :data:`fork_lock` is for what a child cannot put right: native code with locks of its own,
  imports, a file that is opened and not yet known. It is the only lock that a fork waits for.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[[], None])

#: Held around every fork of this process. Native compiler code (LLVM, a JIT linker) that runs in
#: the user's process, and imports, hold it too, since a child forked meanwhile would inherit their
#: locks, taken. No lock of :func:`lock` may be waited for while it is held, other than those that
#: are never held while waiting for it. Reentrant.
fork_lock = threading.RLock()

_is_child = False

_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_reentrant: weakref.WeakSet[Any] = weakref.WeakSet()


def lock() -> threading.Lock:
    """A lock that is free in a forked child, for short sections in which nothing forks."""
    made = threading.Lock()
    _locks.add(made)
    return made


def rlock() -> threading.RLock:
    """A reentrant lock that is free in a forked child, unless the thread that forks holds it.

    For sections in which code of the user's may run, which may fork.
    """
    made = threading.RLock()
    _reentrant.add(made)
    return made


def in_child(function: _F) -> _F:
    """Register ``function`` to run in every forked child; usable as a decorator.

    The locks of this module are free by then, and no other thread exists. Functions run in the
    order in which they were registered.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)
    return function


def before(function: _F) -> _F:
    """Register ``function`` to run before the forks of others; usable as a decorator.

    It takes no lock. Forks of a thread that holds :data:`fork_lock` are PolyBlocks' own.
    """

    def run() -> None:
        if not fork_lock._is_owned():  # type: ignore[attr-defined]
            function()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=run)
    return function


def is_child() -> bool:
    """Whether this process was forked from one that had loaded this module."""
    return _is_child


def _release() -> None:
    # Not if a signal's exception ended the waiting for it: the system forks all the same.
    if fork_lock._is_owned():  # type: ignore[attr-defined]
        fork_lock.release()


def _renew() -> None:
    global _is_child
    _is_child = True
    for each in list(_locks):
        each._at_fork_reinit()
    # The thread that forks goes on in the child, inside of whatever it is inside of.
    for each in (*_reentrant, fork_lock):
        if not each._is_owned():
            each._at_fork_reinit()
    _release()
    _forget_imports()


def _forget_imports() -> None:
    """Let a child import what another thread of its parent was importing.

    Python's lock of such a module stays with that thread, and importing it would wait. The module
    is half executed, and goes out as if its import had failed.
    """
    locks = getattr(importlib._bootstrap, "_module_locks", {})
    for name, reference in list(locks.items()):
        if getattr(reference(), "owner", None) not in (None, threading.get_ident()):
            sys.modules.pop(name, None)
            del locks[name]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=fork_lock.acquire, after_in_parent=_release, after_in_child=_renew)
