"""What is tried in several versions, and with which tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: Tests of what the frontends have in common.
_SHARED = (
    "tests/e2e/test_three_frontends.py",
    "tests/e2e/test_same_contractions.py",
    "tests/e2e/test_cache_processes.py",
    "tests/e2e/test_num_threads.py",
    "tests/e2e/test_transposed_convolutions.py",
    "tests/users/test_constants.py",
)


@dataclass(frozen=True)
class Subject:
    """A project of others, of which we accept a range.

    Attributes:
        pyproject: the file with the range, relative to the repository's root.
        name: the distribution that the range is of.
        installed: what is installed of it, where that is another build of the same modules.
        tests: globs of files.
        brief: those of files that depend most on what the releases do, a minute or two.
        used: what the tests use with it; pip chooses versions that agree.
        lowest: requirements on these for the low end.
        pinned: whose versions in ``constraints.txt`` do not hold meanwhile, further to these.
    """

    pyproject: str
    name: str
    installed: str
    tests: tuple[str, ...]
    brief: tuple[str, ...] = ()
    used: tuple[str, ...] = ()
    lowest: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()

    def files(self, *, brief: bool = False) -> list[str]:
        """The files of tests, relative to the root; of a subject without brief ones all."""
        found: dict[str, None] = {}
        for pattern in (brief and self.brief) or self.tests:
            found |= {str(path.relative_to(ROOT)): None for path in sorted(ROOT.glob(pattern))}
        return list(found)


def _frontend(name: str) -> tuple[str, ...]:
    return tuple(f"tests/{folder}/test_{name}_*.py" for folder in ("unit", "e2e", "users"))


def _named(folder: str, frontend: str, *names: str) -> tuple[str, ...]:
    return tuple(f"tests/{folder}/test_{frontend}_{name}.py" for name in names)


#: Models forward and backward, fallbacks, errors, caches, factorizations, Dynamo's tracing.
_TORCH_E2E = (
    *("api", "arrivals", "cached_calls", "caches", "counts", "early_backward", "exported"),
    *("fallback", "gradients", "guarded_calls", "inline_cache", "logging", "models", "modules"),
    *("openmp", "plain_functions", "random", "refused_values", "runtime", "short_lists"),
    *("spellings", "types", "value_variants", "factorization_sizes"),
)
_TORCH_USERS = (
    *("breaks_in_loops", "changing_integers", "changing_numbers", "checkpoints", "counters"),
    *("func", "inner_gradients", "logging", "optimizers", "recurrent", "second_gradients"),
    *("transformers", "uncompiled_dtypes", "untraceable"),
)

SUBJECTS: Mapping[str, Subject] = {
    "torch": Subject(
        "plugins/frontend_torch/pyproject.toml",
        "torch",
        "torch",
        (*_frontend("torch"), "tests/e2e/test_control_flow.py", *_SHARED),
        brief=(
            "tests/unit/test_torch_fake_results.py",
            *_named("e2e", "torch", *_TORCH_E2E),
            *_named("users", "torch", *_TORCH_USERS),
            "tests/e2e/test_three_frontends.py",
        ),
    ),
    "jax": Subject(
        "plugins/frontend_jax/pyproject.toml",
        "jax",
        "jax",
        (*_frontend("jax"), "tests/unit/test_xla_call.py", *_SHARED),
        used=("flax", "equinox", "optax"),
        pinned=("jaxlib",),
    ),
    "tf": Subject(
        "plugins/frontend_tf/pyproject.toml",
        "tensorflow",
        "tensorflow-cpu",
        (*_frontend("tf"), *_SHARED),
        used=("keras",),
        lowest=("keras==3.10",),  # the lowest that TensorFlow 2.20 asks for
    ),
    "numpy": Subject(
        "core/pyproject.toml",
        "numpy",
        "numpy",
        (
            "tests/unit/test_*_arrays.py",
            "tests/unit/test_artifact.py",
            "tests/unit/test_common_utils.py",
            "tests/unit/test_launch.py",
            "tests/unit/test_simt_values.py",
            "tests/e2e/test_torch_runtime.py",
            "tests/e2e/test_jax_runtime.py",
            "tests/e2e/test_tf_runtime.py",
            *_SHARED,
        ),
    ),
}
