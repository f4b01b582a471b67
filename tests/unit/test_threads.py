"""The number of threads: option, framework, environment, affinity, control group, in this order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from polyblocks.runtime import cgroup, pages, threads


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    threads.forget()
    yield
    threads.forget()


@pytest.fixture
def group(tmp_path, monkeypatch):
    """A made-up control group; returns a function that writes one of its files."""
    monkeypatch.setattr(cgroup, "ROOT", tmp_path / "fs")
    monkeypatch.setattr(cgroup, "PROC", tmp_path / "proc")

    def write(proc: str, **files: str) -> None:
        (tmp_path / "proc").write_text(proc)
        for name, text in files.items():
            path = tmp_path / "fs" / name.replace("__", "/").replace("DOT", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return write


def test_option_wins(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads.resolve(7) == 7


@pytest.fixture
def eight_cpus(monkeypatch, group):
    group("")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


@pytest.mark.parametrize("text, expected", [("3", 3), ("5,2", 5), (" 4 ", 4), ("64", 8)])
def test_environment(monkeypatch, eight_cpus, text, expected):
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert threads.resolve() == expected


@pytest.mark.parametrize(
    "option, framework, expected",
    [(7, 5, 7), (64, 5, 64), (None, 5, 5), (None, 64, 8), (None, None, 3)],
)
def test_order(monkeypatch, eight_cpus, option, framework, expected):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads.resolve(option, framework) == expected


@pytest.mark.parametrize("text", ["", "0", "-2", "many", "2.5"])
def test_useless_environment_is_passed_over(monkeypatch, text):
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert threads.resolve() == threads.available_cpus()


def test_affinity(monkeypatch, group):
    group("")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    assert threads.resolve() == 3


def test_system_without_affinity(monkeypatch, group):
    group("")
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert threads.resolve() == 6


@pytest.mark.parametrize("quota, expected", [(2.5, 3), (0.2, 1), (64.0, 8), (None, 8)])
def test_quota_cuts_the_affinity(monkeypatch, quota, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(cgroup, "cpu_quota", lambda: quota)
    assert threads.available_cpus() == expected


def test_looked_up_once_until_told(monkeypatch, eight_cpus):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads.resolve() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert threads.resolve() == 3
    threads.forget()
    assert threads.resolve() == 4


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_real_affinity_and_forked_worker():
    code = """
import os
from polyblocks.runtime import threads
before = threads.available_cpus()
pid = os.fork()
if pid == 0:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    os._exit(threads.available_cpus())
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
assert threads.available_cpus() == before
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_version_2_group_and_its_parents(group):
    group(
        "0::/a/b\n",
        cgroupDOTcontrollers="cpu memory",
        a__cpuDOTmax="150000 100000",
        a__b__cpuDOTmax="max 100000",
        a__memoryDOTmax="max",
        a__b__memoryDOTmax="1000000",
    )
    assert cgroup.cpu_quota() == 1.5
    assert cgroup.memory_limit() == 1_000_000


def test_version_1_group(group):
    group(
        "4:memory:/m\n1:cpu,cpuacct:/c\n0::/\n",
        cpu__c__cpuDOTcfs_quota_us="50000",
        cpu__c__cpuDOTcfs_period_us="100000",
        memory__m__memoryDOTlimit_in_bytes="2000000",
    )
    assert cgroup.cpu_quota() == 0.5
    assert cgroup.memory_limit() == 2_000_000
    assert pages.total_memory() == 2_000_000


def test_version_1_group_without_a_limit(group):
    group(
        "1:cpu,cpuacct:/\n",
        cpu__cpuDOTcfs_quota_us="-1",
        cpu__cpuDOTcfs_period_us="100000",
    )
    assert cgroup.cpu_quota() is None


def test_path_of_the_host_inside_a_container(group):
    group("0::/../../host\n", cgroupDOTcontrollers="", cpuDOTmax="200000 100000")
    assert cgroup.cpu_quota() == 2.0


def test_no_groups_at_all(tmp_path, monkeypatch):
    monkeypatch.setattr(cgroup, "PROC", Path(tmp_path / "none"))
    assert cgroup.cpu_quota() is None
    assert cgroup.memory_limit() is None
    assert pages.total_memory() > 1 << 20


def test_unreadable_numbers(group):
    group("0::/a\n", cgroupDOTcontrollers="", a__cpuDOTmax="lots 100000")
    assert cgroup.cpu_quota() is None
