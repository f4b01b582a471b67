"""The cache: safe among threads and processes, bounded, and never the reason of a failure."""

from __future__ import annotations

import importlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from polyblocks import driver
from polyblocks.artifact import Artifact
from polyblocks.cache import cache as cache_module
from polyblocks.cache import key_lock, sources, toolchain
from polyblocks.cache.cache import Cache, cache_key, default_cache
from polyblocks.errors import ArtifactError
from polyblocks.registry.registry import Registry

KEY = cache_key(["a"])
OTHER = cache_key(["b"])


def plan(text: str = "", blob: bytes = b"") -> Artifact:
    return Artifact({"kind": "plan", "plan": text}, {"b": blob} if blob else {})


@pytest.fixture(autouse=True)
def _warn_again(monkeypatch):
    monkeypatch.setattr(cache_module, "_warned", set())


@pytest.fixture
def cache(tmp_path) -> Cache:
    return Cache(tmp_path / "cache")


def only_file(cache: Cache) -> Path:
    (entry,) = cache.entries()
    return entry.path


# --- keys and versions ---------------------------------------------------------------------------


def test_key_sees_every_part_and_border():
    keys = {cache_key(p) for p in (["ab"], ["a", "b"], ["b", "a"], ["ab", ""], [], [b"\xff"])}
    assert len(keys) == 6
    assert cache_key(["ä"]) == cache_key(["ä".encode()])
    assert all(len(k) == 64 for k in keys)


@pytest.mark.parametrize("key", ["", "a", "../" + "a" * 61, "A" * 64])
def test_other_keys_are_refused(cache, key):
    for call in (cache.get, lambda k: cache.put(k, plan()), lambda k: cache.lock(k).__enter__()):
        with pytest.raises(ValueError, match=r"a cache key is 64 hexadecimal digits, not"):
            call(key)


def versions_in(tmp_path: Path, **environment: str) -> tuple[str, str]:
    code = (
        "import sys; from polyblocks.cache.cache import toolchain_versions as v; print(v());"
        "print(sorted({m.split('.')[0] for m in sys.modules}"
        " & {'torch_mlir', 'llvmlite', 'importlib_metadata'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path), **environment},
    )
    first, second = done.stdout.splitlines()
    return first, second


def test_versions_follow_the_sources_and_load_nothing(tmp_path):
    package = tmp_path / "polyblocks_extra"
    (package / "passes").mkdir(parents=True)
    (package / "__init__.py").touch()
    source = package / "passes" / "p.py"
    source.write_text("x = 1\n")
    before, loaded = versions_in(tmp_path)
    assert loaded == "[]"
    assert "'torch-mlir'" in before
    assert "'polyblocks-compiler'" in before
    assert versions_in(tmp_path)[0] == before
    source.write_text("x = 12\n")
    changed = versions_in(tmp_path)[0]
    assert changed != before
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "p.pyc").write_bytes(b"x")
    assert versions_in(tmp_path)[0] == changed
    (tmp_path / "polyblocks_dist-7.5.dist-info").mkdir()
    assert "'polyblocks-dist': '7.5'" in versions_in(tmp_path)[0]


EXTENSION = """
from polyblocks import hookimpl
POLYBLOCKS_API = {"configure_pipeline": 1}
@hookimpl
def configure_pipeline(pipeline):
    from vendor_helper import one
    import apart.tables as tables, absent
"""

#: File that is written -> its text, or of metadata that is in the way, what it is a second time.
PLUGIN_FILES = {
    "vendor.py": EXTENSION,
    "vendor-1.0.dist-info/METADATA": "Name: vendor\nVersion: 1.0\nRequires-Dist: Other.Dist>=2\n\n",
    "vendor-1.0.dist-info/entry_points.txt": "[polyblocks.extensions]\nvendor = vendor\n",
    "other_dist-2.0.dist-info/METADATA": "Name: other_dist\nVersion: 2.0\n\n",
    "vendor_helper.py": "import deep\n",
    "sources/apart/tables.py": "from deep_package.inner import (one,\n two)\n",
    "sources/deep_package/__init__.py": "",
    "sources/deep_package/inner/more.py": "",
    "sources/unread/__init__.py": "",
}


@pytest.fixture(scope="module")
def plugin_keys(tmp_path_factory):
    """What the cache key has of an extension that is one module, after each change of a file."""
    folder = tmp_path_factory.mktemp("plugin")
    for name, text in PLUGIN_FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)

    def key() -> dict[str, str]:
        importlib.invalidate_caches()
        found = Registry()
        plugins = found.foreign(found.target("cpu"))
        return toolchain._versions.__wrapped__(plugins)

    def changed(name: str) -> dict[str, str]:
        with (folder / name).open("a") as file:
            file.write("\n# changed\n")
        return key()

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLYBLOCKS_PLUGINS", "cpu,vendor")
        patch.syspath_prepend(str(folder / "sources"))
        patch.syspath_prepend(str(folder))
        keys = {"": key(), "nothing": key()}
        for name in PLUGIN_FILES:
            if name.endswith(".py"):
                keys[name] = changed(name)
        keys["before the version"] = key()
        (folder / "other_dist-2.0.dist-info").rename(folder / "other_dist-2.1.dist-info")
        keys["version"] = key()
        sys.modules.pop("vendor")
    return keys


@pytest.mark.parametrize(
    "name", [name for name in PLUGIN_FILES if name.endswith(".py") and "unread" not in name]
)
def test_the_key_sees_what_a_plugin_imports(plugin_keys, name):
    names = list(plugin_keys)
    assert plugin_keys[name] != plugin_keys[names[names.index(name) - 1]]


def test_the_key_sees_the_version_of_what_a_plugin_requires(plugin_keys):
    assert "other-dist" not in toolchain.toolchain_versions()
    assert plugin_keys["before the version"]["other-dist"] == "2.0"
    assert plugin_keys["version"]["other-dist"] == "2.1"


def test_the_key_sees_nothing_else(plugin_keys):
    assert plugin_keys["nothing"] == plugin_keys[""]
    names = list(plugin_keys)
    unread = next(name for name in names if "unread" in name)
    assert plugin_keys[unread] == plugin_keys[names[names.index(unread) - 1]]


def test_installed_or_large_packages_are_known_by_one_file(tmp_path, monkeypatch):
    library = tmp_path / "library"
    library.mkdir()
    for name in ("__init__.py", "deep.py"):
        (library / name).write_text("import unheard_of\n")
    (tmp_path / "plugged.py").write_text("import library\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def rows(installed: bool) -> list[str]:
        found = sources.plugin_files(["plugged"], lambda folder: installed)
        return sorted(row.split()[0] for row in found)

    assert rows(installed=True) == ["library", "plugged"]
    assert rows(installed=False) == ["library/__init__.py", "library/deep.py", "plugged"]
    monkeypatch.setattr(sources, "_MANY", 1)
    assert rows(installed=False) == ["library", "plugged"]


def test_a_plugin_in_a_zip_file_is_the_zip_file(tmp_path, monkeypatch):

    def write(text: str) -> list[str]:
        with zipfile.ZipFile(tmp_path / "plugins.zip", "w") as archive:
            archive.writestr("zipped_plugin/__init__.py", text)
        return list(sources.plugin_files(["zipped_plugin"], lambda folder: False))

    write("")
    monkeypatch.syspath_prepend(str(tmp_path / "plugins.zip"))
    before = write("")
    assert len(before) == 1
    assert write("x = 1") != before


def test_versions_are_quick():
    def seconds():
        begin = time.thread_time()
        toolchain._versions.__wrapped__(())
        return time.thread_time() - begin

    assert min(seconds() for _ in range(10)) < 0.05


# --- get and put ---------------------------------------------------------------------------------


def test_put_then_get(cache):
    assert cache.get(KEY) is None
    cache.put(KEY, plan("x", b"blob"))
    assert cache.get(KEY).blobs == {"b": b"blob"}
    assert cache.get(OTHER) is None
    cache.put(KEY, plan("y"))
    assert cache.get(KEY).manifest["plan"] == "y"
    assert [e.key for e in cache.entries()] == [KEY]
    assert cache.verify() == []


def test_modes_are_private(cache):
    cache.put(KEY, plan())
    assert cache.root.stat().st_mode & 0o777 == 0o700
    path = only_file(cache)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "damage",
    [
        lambda p: p.write_bytes(b""),
        lambda p: p.write_bytes(random.Random(1).randbytes(5000)),
        lambda p: p.write_bytes(p.read_bytes()[:-30]),
        lambda p: p.write_bytes(p.read_bytes().replace(b"blob!", b"BLOB!")),
        lambda p: p.chmod(0o666),
        lambda p: (p.rename(p.with_suffix(".x")), p.symlink_to(p.with_suffix(".x"))),
        lambda p: (p.unlink(), os.mkfifo(p)),
    ],
    ids=["empty", "noise", "short", "changed", "open to all", "link", "pipe"],
)
def test_damaged_entry_is_removed_silently(cache, damage, caplog, capfd):
    cache.put(KEY, plan("x", b"blob!" * 100))
    damage(only_file(cache))
    (bad,) = cache.verify()
    assert bad.path == only_file(cache)
    assert bad.reason
    assert cache.get(KEY) is None
    assert cache.entries() == []
    assert not [r for r in caplog.records if r.levelname == "WARNING"]
    assert capfd.readouterr() == ("", "")
    cache.put(KEY, plan("x", b"blob!" * 100))
    assert cache.get(KEY) is not None
    assert cache.verify() == []


def test_verify_names_strangers(cache):
    cache.put(KEY, plan())
    stranger = cache.root / "zz" / "notes.pbk"
    stranger.parent.mkdir()
    stranger.write_text("x")
    (bad,) = cache.verify()
    assert (bad.path, bad.reason) == (stranger, "its name is not a cache key")


def test_reading_an_entry_that_is_gone(cache):
    cache.put(KEY, plan("x"))
    (entry,) = cache.entries()
    assert entry.read().manifest["plan"] == "x"
    entry.path.unlink()
    with pytest.raises(ArtifactError, match=r"cache entry cannot be read: .*No such file"):
        entry.read()


def test_entry_of_another_user_is_not_read(cache, monkeypatch):
    cache.put(KEY, plan("x"))
    (entry,) = cache.entries()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(ArtifactError, match=r"belongs to another user \(uid \d+\)"):
        entry.read()


def test_entry_that_is_no_file_is_not_read(cache):
    cache.put(KEY, plan("x"))
    (entry,) = cache.entries()
    entry.path.unlink()
    entry.path.mkdir()
    with pytest.raises(ArtifactError, match=r"the cache entry is not a file"):
        entry.read()


def test_clear(cache):
    cache.put(KEY, plan())
    cache.put(OTHER, plan())
    assert cache.clear() == 2
    assert cache.entries() == []
    assert cache.clear() == 0
    assert Cache(cache.root / "none").clear() == 0


# --- size ----------------------------------------------------------------------------------------


def keys(n: int) -> list[str]:
    return [cache_key([str(i)]) for i in range(n)]


def test_eviction_takes_what_was_unused_for_longest(tmp_path):
    cache = Cache(tmp_path / "c", max_bytes=10_000)
    old = time.time() - 1000
    for i, key in enumerate(keys(4)):
        cache.put(key, plan(blob=bytes(2000)))
        os.utime(cache._path(key), (old + i, old + i))
    assert cache.get(keys(4)[0]) is not None  # a use
    cache.put(keys(5)[4], plan(blob=bytes(2000)))
    left = {e.key for e in cache.entries()}
    assert keys(4)[1] not in left
    assert {keys(4)[0], keys(5)[4]} <= left
    assert sum(e.size for e in cache.entries()) <= 10_000


def test_entry_larger_than_the_limit_is_not_stored(tmp_path):
    cache = Cache(tmp_path / "c", max_bytes=1000)
    cache.put(KEY, plan())
    cache.put(OTHER, plan(blob=bytes(2000)))
    assert [e.key for e in cache.entries()] == [KEY]


def test_entries_are_counted_at_first_and_whenever_much_was_written(tmp_path, monkeypatch):
    counted = []
    entries = Cache.entries
    monkeypatch.setattr(Cache, "entries", lambda self: counted.append(1) or entries(self))
    cache = Cache(tmp_path / "c", max_bytes=64 * 5000)
    seen = []
    for key in keys(5):
        cache.put(key, plan(blob=bytes(2000)))
        seen.append(len(counted))
    assert seen == [1, 1, 1, 2, 2]


def test_leftovers_are_swept(cache):
    cache.put(KEY, plan())
    old = time.time() - 2 * cache_module.STALE_S
    (cache.root / "locks").mkdir()
    left = [cache.root / "tmp" / "left.pbk", cache.root / "locks" / OTHER]
    young = [cache.root / "tmp" / "young.pbk", cache.root / "locks" / KEY]
    for path in left + young:
        path.write_bytes(b"x")
    for path in left:
        os.utime(path, (old, old))
    Cache(cache.root).put(OTHER, plan())  # another process
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in young)


# --- folders that cannot be used -----------------------------------------------------------------


def works_without_cache(cache: Cache, caplog, message: str) -> None:
    for _ in range(3):
        with cache.lock(KEY) as held:
            assert held
            assert cache.get(KEY) is None
            cache.put(KEY, plan("x"))
    assert cache.entries() == []
    assert cache.verify() == []
    assert cache.clear() == 0
    (record,) = [r for r in caplog.records if r.levelname == "WARNING"]
    assert message in record.getMessage()
    assert "\n" not in record.getMessage()


def test_folder_below_a_file(tmp_path, caplog):
    (tmp_path / "file").write_text("x")
    works_without_cache(Cache(tmp_path / "file" / "c"), caplog, "cannot be used (Not a directory)")


def test_folder_open_to_others(tmp_path, caplog):
    (tmp_path / "c").mkdir()
    (tmp_path / "c").chmod(0o777)
    works_without_cache(Cache(tmp_path / "c"), caplog, "can be written by others and is not used")
    assert list((tmp_path / "c").iterdir()) == []


def test_folder_of_another_user(tmp_path, caplog, monkeypatch):
    (tmp_path / "c").mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    works_without_cache(Cache(tmp_path / "c"), caplog, "belongs to another user")


def test_full_disk(cache, caplog, monkeypatch):
    def replace(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", replace)
    works_without_cache(cache, caplog, "cannot be written (No space left on device)")
    assert list((cache.root / "tmp").iterdir()) == []


def test_folder_without_write_permission(cache, caplog, monkeypatch):
    # Simulated, since the super-user may write everywhere.
    cache.put(OTHER, plan("stored before"))
    mkdir, open_ = Path.mkdir, os.open

    def no_mkdir(self, *args, **kwargs):
        if not self.is_dir():
            raise PermissionError(13, "Permission denied")
        mkdir(self, *args, **kwargs)

    def read_only(path, flags, *args, **kwargs):
        if flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied")
        return open_(path, flags, *args, **kwargs)

    monkeypatch.setattr(Path, "mkdir", no_mkdir)
    monkeypatch.setattr(os, "open", read_only)
    for _ in range(2):
        with cache.lock(KEY):
            cache.put(KEY, plan())
    assert cache.get(OTHER).manifest["plan"] == "stored before"
    (record,) = [r for r in caplog.records if r.levelname == "WARNING"]
    assert "cannot be written (Permission denied)" in record.getMessage()


def test_file_system_without_locks(cache, monkeypatch):
    def flock(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(key_lock.fcntl, "flock", flock)
    with cache.lock(KEY) as held:
        assert held
    assert key_lock._descriptors == set()


# --- the environment -----------------------------------------------------------------------------


def test_default_follows_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(tmp_path / "one"))
    monkeypatch.setenv("POLYBLOCKS_CACHE_MAX_BYTES", "12345")
    one = default_cache()
    assert (one.root, one.max_bytes) == (tmp_path / "one", 12345)
    assert default_cache() is one
    monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(tmp_path / "two"))
    assert default_cache().root == tmp_path / "two"
    monkeypatch.delenv("POLYBLOCKS_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache().root.is_relative_to(tmp_path)
    assert default_cache().root.name == "polyblocks"
    assert not default_cache().root.exists()


def test_wrong_limit_in_the_environment(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("POLYBLOCKS_CACHE_MAX_BYTES", "2 GiB")
    assert Cache(tmp_path).max_bytes == cache_module.DEFAULT_MAX_BYTES
    assert "must be a number of bytes, not '2 GiB'" in caplog.text


# --- locks ---------------------------------------------------------------------------------------


def test_lock_leaves_nothing(cache):
    with cache.lock(KEY):
        assert [p.name for p in (cache.root / "locks").iterdir()] == [KEY]
    assert list((cache.root / "locks").iterdir()) == []
    assert key_lock._thread_locks == {}
    assert key_lock._descriptors == set()


def test_lock_is_let_go_by_an_error(cache):
    with pytest.raises(ZeroDivisionError, match=r"x"), cache.lock(KEY):
        raise ZeroDivisionError("x")
    with cache.lock(KEY, timeout_s=1) as held:
        assert held


def test_keys_do_not_wait_for_each_other(cache):
    with cache.lock(KEY), ThreadPoolExecutor(1) as pool:

        def other() -> bool:
            with cache.lock(OTHER, timeout_s=2) as held:
                return held

        assert pool.submit(other).result(5)


def test_one_of_32_threads_compiles(cache):
    compiled = []
    barrier = threading.Barrier(32)

    def one(_: int) -> str:
        barrier.wait()
        with cache.lock(KEY):
            found = cache.get(KEY)
            if found is None:
                compiled.append(threading.get_ident())
                time.sleep(0.05)  # would be overtaken if the lock did not hold
                found = plan("x")
                cache.put(KEY, found)
            return found.manifest["plan"]

    with ThreadPoolExecutor(32) as pool:
        assert set(pool.map(one, range(32))) == {"x"}
    assert len(compiled) == 1


def test_threads_are_kept_apart_without_a_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    cache = Cache(tmp_path / "file")
    inside = []

    def one(_: int) -> None:
        with cache.lock(KEY):
            inside.append(1)
            assert len(inside) == 1
            time.sleep(0.002)
            inside.pop()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(16)))


def test_lock_timeout_lets_on_with_a_warning(cache, caplog):
    def waiting() -> tuple[bool, float]:
        begin = time.monotonic()
        with cache.lock(KEY, timeout_s=0.1) as held:
            return held, time.monotonic() - begin

    with cache.lock(KEY), ThreadPoolExecutor(1) as pool:
        held, seconds = pool.submit(waiting).result(10)
    assert not held
    assert 0.1 <= seconds < 5
    assert "going on without" in caplog.text


def child(script: str, root: Path) -> subprocess.Popen[str]:
    code = "import os, sys, time; from polyblocks.cache.cache import Cache, cache_key\n"
    code += "cache, key = Cache(sys.argv[1]), cache_key(['a'])\n" + script
    return subprocess.Popen(
        [sys.executable, "-c", code, str(root)], stdout=subprocess.PIPE, text=True
    )


def test_lock_excludes_other_processes_and_dies_with_them(cache):
    holder = child("with cache.lock(key): print('in', flush=True); time.sleep(60)", cache.root)
    assert holder.stdout.readline() == "in\n"
    with cache.lock(KEY, timeout_s=0.2) as held:
        assert not held
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with cache.lock(KEY, timeout_s=5) as held:
        assert held


def test_lock_is_not_inherited_by_forked_children(cache):
    # The forked child lives on while its parent, who held the lock, was killed.
    holder = child(
        "with cache.lock(key):\n"
        "    pid = os.fork()\n"
        "    if pid: print(pid, flush=True)\n"
        "    time.sleep(60)",
        cache.root,
    )
    orphan = int(holder.stdout.readline())
    try:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with cache.lock(KEY, timeout_s=5) as held:
            assert held
    finally:
        os.kill(orphan, signal.SIGKILL)


def test_forked_child_can_take_a_lock_that_a_thread_of_its_parent_held(cache):
    taken, leave = threading.Event(), threading.Event()

    def holder() -> None:
        with cache.lock(KEY):
            taken.set()
            leave.wait(10)

    thread = threading.Thread(target=holder)
    thread.start()
    taken.wait(10)
    pid = os.fork()
    if pid == 0:
        with cache.lock(KEY, timeout_s=20) as held:
            os._exit(0 if held else 1)
    leave.set()
    thread.join()
    assert os.waitpid(pid, 0)[1] == 0


def test_many_processes_exclude_each_other(cache, tmp_path):
    counter = tmp_path / "counter"
    counter.write_text("0")
    script = (
        f"p = {str(counter)!r}\n"
        "for _ in range(40):\n"
        "    with cache.lock(key):\n"
        "        n = int(open(p).read()); time.sleep(0.0005); open(p, 'w').write(str(n + 1))\n"
    )
    children = [child(script, cache.root) for _ in range(4)]
    assert [c.wait(60) for c in children] == [0] * 4
    assert counter.read_text() == "160"


# --- through the driver --------------------------------------------------------------------------


def test_driver_stores_what_was_built(cache):
    built = []

    def build() -> Artifact:
        built.append(1)
        return plan("x")

    for _ in range(3):
        assert driver.cached(KEY, build, cache=cache).manifest["plan"] == "x"
    assert len(built) == 1
    driver.cached(KEY, build, refresh=True, cache=cache)
    assert len(built) == 2


def test_driver_does_not_store_the_plan_of_a_bad_moment(cache):
    built = []

    def build() -> Artifact:
        built.append(1)
        return Artifact({"kind": "plan", "plan": "all to the framework", "transient": True})

    for _ in range(3):
        driver.cached(KEY, build, cache=cache)
    assert len(built) == 3
    assert cache.entries() == []
