"""The C source of a library: checks, choice among chips, workspaces, around the program's code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polyblocks.artifact import PREPARATION, Artifact
from polyblocks.c_library.files import MADE
from polyblocks.c_library.header import parameters
from polyblocks.c_library.interface import Interface, places
from polyblocks.c_library.source import (
    arrays_and_counts,
    c_string,
    embedded,
    expected_rows,
    weight_names,
)
from polyblocks.preparation import part
from polyblocks_cpu.library import features
from polyblocks_cpu.openmp import LIMIT

#: Bytes that workspaces are aligned to: a page.
_ALIGNMENT = 4096

#: Static names at the top of the source.
STATICS = frozenset(
    "archs check check_each check_others check_overlaps check_weights choose choosing chosen drain "
    "error_text expected fail give num_threads overlap pool runs start take wanted_threads".split()
)


@dataclass(frozen=True)
class Variant:
    """The program for one chip.

    Attributes:
        number: its place among those of the library, the best first.
        artifact: of this chip alone.
        stored: files with the contents of stored arrays, in the order of the signature.
    """

    number: int
    artifact: Artifact
    stored: tuple[str, ...]

    @property
    def entry(self) -> str:
        """Name of the exported function in the library's objects."""
        return self.symbol(self.artifact.manifest["entry"])

    @property
    def prepare(self) -> str:
        """The same of its preparation."""
        return self.symbol(self.artifact.manifest[PREPARATION]["entry"], "prepare")

    def symbol(self, name: str, what: str = "run") -> str:
        """The library's name of a symbol of its objects."""
        return f"{what}_{self.number}_{name}"


def source_text(
    interface: Interface, family: str, variants: Sequence[Variant], weights: Sequence[str]
) -> str:
    """The C source.

    Args:
        interface: of the program.
        family: of the chips.
        variants: the best first.
        weights: files that are included, each in a read-only section.
    """
    asked = [name for each in variants for name in _requires(each)]
    parts = [
        _start(interface),
        features.definitions(family, asked),
        _weights(interface.name, weights),
        *(_variant(interface, each) for each in variants),
        _choice(interface, family, variants),
        _function(interface),
    ]
    return "\n".join(parts)


def _requires(variant: Variant) -> list[str]:
    return list(variant.artifact.manifest.get("requires", ()))


def _start(interface: Interface) -> str:
    return f"""\
#define _GNU_SOURCE
#include "{MADE}/{interface.name}.h"

#include "checks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

extern int omp_get_max_threads(void);

/* No call runs on more threads, whatever the caller says; of generated code. */
__attribute__((visibility("hidden"))) int32_t {LIMIT} = INT32_MAX;

static int32_t wanted_threads;

static int32_t num_threads(void) {{
  int32_t wanted = __atomic_load_n(&wanted_threads, __ATOMIC_RELAXED);
  int32_t most = omp_get_max_threads();
  return wanted > 0 && wanted < most ? wanted : most;
}}

/* Blocks of one size that no call uses at the moment; the first bytes of one hold the next. */
struct pool {{
  size_t bytes;
  pthread_mutex_t lock;
  void *free;
}};

__attribute__((unused)) static void *take(struct pool *pool) {{
  pthread_mutex_lock(&pool->lock);
  void *block = pool->free;
  if (block) pool->free = *(void **)block;
  pthread_mutex_unlock(&pool->lock);
  if (!block && posix_memalign(&block, {_ALIGNMENT}, pool->bytes)) return NULL;
  return block;
}}

__attribute__((unused)) static void give(struct pool *pool, void *block) {{
  if (!block) return;
  pthread_mutex_lock(&pool->lock);
  *(void **)block = pool->free;
  pool->free = block;
  pthread_mutex_unlock(&pool->lock);
}}

__attribute__((unused)) static void drain(struct pool *pool) {{
  while (pool->free) {{
    void *next = *(void **)pool->free;
    free(pool->free);
    pool->free = next;
  }}
}}
"""


def _weights(name: str, files: Sequence[str]) -> str:
    lines = [embedded(f"{name}_stored_{number}", file) for number, file in enumerate(files)]
    return "\n".join([*lines, ""])


def _pool(name: str, size: int) -> str:
    # A block that is free holds a pointer.
    size = max(size, 64)
    return f"static struct pool {name} = {{{size}, PTHREAD_MUTEX_INITIALIZER, NULL}};"


def _variant(interface: Interface, variant: Variant) -> str:
    k, manifest = variant.number, variant.artifact.manifest
    rows = manifest["arguments"]
    lines = [f"int32_t {variant.entry}(const uint64_t *pointers, int32_t num_threads);"]
    sizes = [row["shape"][0] for row in rows if row["role"] == "workspace"]
    pools = {f"workspace_{k}_{n}": size for n, size in enumerate(sizes)}
    kept = _kept(interface, variant)
    pools |= kept.pools
    lines += [_pool(name, size) for name, size in pools.items()]
    if pools:
        drains = "".join(f" drain(&{name});" for name in pools)
        lines.append(f"__attribute__((destructor)) static void drain_{k}(void) {{{drains} }}")
    lines.append(kept.definitions)
    checks = manifest.get("checks", [])
    texts = ", ".join([*map(c_string, checks), "NULL"])
    lines.append(f"static const char *const checks_{k}[] = {{{texts}}};")
    taken = [f"workspace_{k}_{n}" for n in range(len(sizes))]
    takes = "".join(f"  void *{name}_block = take(&{name});\n" for name in taken)
    gives = "".join(f"  give(&{name}, {name}_block);\n" for name in taken)
    missing = " || ".join(f"!{name}_block" for name in taken) or "0"
    pointers = ", ".join(
        f"(uint64_t)(uintptr_t){_address(interface.name, variant, kind, n)}"
        for kind, n in places(variant.artifact)
    )
    lines.append(
        f"""
static int32_t run_{k}(void *const *arrays, int32_t threads) {{
  (void)arrays;
{takes}{kept.before}  int32_t status;
  if ({missing}) {{
    status = fail(STATUS_NO_MEMORY, "no memory for intermediate results");
  }} else {{
    const uint64_t pointers[] = {{{pointers}}};
    status = {kept.condition}{variant.entry}(pointers, threads);
    if (status > 0)
      fail(status, "%s", status <= {len(checks)} ? checks_{k}[status - 1] : "a check failed");
  }}
{gives}{kept.after}  return status;
}}
"""
    )
    return "\n".join(lines)


def _address(name: str, variant: Variant, kind: str, n: int) -> str:
    if kind == "array":
        return f"arrays[{n}]"
    if kind == "stored":
        return f"{name}_stored_{variant.stored[n]}"
    if kind == "workspace":
        return f"workspace_{variant.number}_{n}_block"
    assert kind == "kept", kind
    return f"kept_{variant.number}_block"


@dataclass(frozen=True)
class _Kept:
    """C code around what is computed of constant arrays alone."""

    pools: dict[str, int]
    definitions: str = ""
    before: str = ""
    condition: str = ""
    after: str = ""


def _kept(interface: Interface, variant: Variant) -> _Kept:
    """Code that fills persistent memory: once if all inputs are stored, else at each call."""
    preparation = part(variant.artifact)
    if preparation is None:
        return _Kept({})
    k, manifest = variant.number, preparation.manifest
    rows: list[dict[str, Any]] = manifest["arguments"]
    (size,) = (row["shape"][0] for row in rows if row["role"] == "kept")
    workspace = sum(row["shape"][0] for row in rows if row["role"] == "workspace")
    pools = {f"kept_{k}": size, f"preparing_{k}": workspace}
    whole = places(variant.artifact)
    sources = [None if s is None else whole[s] for s in manifest["sources"]]
    pointers = ", ".join(
        "(uint64_t)(uintptr_t)"
        + (f"preparing_{k}_block" if s is None else _address(interface.name, variant, *s))
        for s in sources
    )
    failed = 'fail(STATUS_NO_MEMORY, "no memory for what is computed of weights")'
    prepare = f"""
int32_t {variant.prepare}(const uint64_t *pointers, int32_t num_threads);

static int32_t fill_{k}(void *const *arrays, void *kept_{k}_block, int32_t threads) {{
  (void)arrays;
  void *preparing_{k}_block = take(&preparing_{k});
  if (!kept_{k}_block || !preparing_{k}_block) {{
    give(&preparing_{k}, preparing_{k}_block);
    return {failed};
  }}
  const uint64_t pointers[] = {{{pointers}}};
  int32_t status = {variant.prepare}(pointers, threads);
  give(&preparing_{k}, preparing_{k}_block);
  return status;
}}
"""
    if all(s is None or s[0] in ("stored", "kept") for s in sources):
        once = f"""{prepare}
static pthread_mutex_t once_{k} = PTHREAD_MUTEX_INITIALIZER;
static void *kept_{k}_filled;

/* Filled by the first call; one that finds no memory leaves it to the next. */
static int32_t prepared_{k}(int32_t threads) {{
  if (__atomic_load_n(&kept_{k}_filled, __ATOMIC_ACQUIRE)) return 0;
  int32_t status = 0;
  pthread_mutex_lock(&once_{k});
  if (!kept_{k}_filled) {{
    void *block = take(&kept_{k});
    status = fill_{k}(NULL, block, threads);
    if (status) give(&kept_{k}, block);
    else __atomic_store_n(&kept_{k}_filled, block, __ATOMIC_RELEASE);
  }}
  pthread_mutex_unlock(&once_{k});
  return status;
}}

__attribute__((destructor)) static void drop_{k}(void) {{ free(kept_{k}_filled); }}
"""
        return _Kept(
            pools,
            once,
            f"  int32_t prepared = prepared_{k}(threads);\n"
            f"  void *kept_{k}_block = kept_{k}_filled;\n",
            "prepared ? prepared : ",
        )
    return _Kept(
        pools,
        prepare,
        f"  void *kept_{k}_block = take(&kept_{k});\n"
        f"  int32_t prepared = fill_{k}(arrays, kept_{k}_block, threads);\n",
        "prepared ? prepared : ",
        f"  give(&kept_{k}, kept_{k}_block);\n",
    )


def _choice(interface: Interface, family: str, variants: Sequence[Variant]) -> str:
    conditions = "".join(
        f"  if ({features.condition(family, _requires(each))}) {{\n"
        f"    chosen = {each.number};\n    return;\n  }}\n"
        for each in variants
    )
    archs = ", ".join(c_string(each.artifact.manifest["arch"]) for each in variants)
    runs = ", ".join(f"run_{each.number}" for each in variants)
    return f"""\
static const char *const archs[] = {{{archs}}};
static int32_t (*const runs[])(void *const *, int32_t) = {{{runs}}};

static int chosen = -1;
static pthread_once_t choosing = PTHREAD_ONCE_INIT;

static void choose(void) {{
{conditions}}}
"""


def _function(interface: Interface) -> str:
    name = interface.name
    archs = "chosen < 0 ? NULL : archs[chosen]"
    return f"""\
static const struct expected expected[] = {{
    {expected_rows(interface)}}};

static int32_t start(void *const *arrays) {{
  pthread_once(&choosing, choose);
  if (chosen < 0)
    return fail(STATUS_UNSUPPORTED_CPU, "{name}: this machine runs none of the library's code");
  return runs[chosen](arrays, num_threads());
}}

EXPORT int32_t {name}(
    {parameters(interface, numbered=True)}) {{
{arrays_and_counts(interface)}  error_text[0] = 0;
  int32_t status = check("{name}", expected, arrays, counts, {len(interface.arrays)});
  return status ? status : start(arrays);
}}

{_bound(interface)}EXPORT const char *{name}_error(void) {{ return error_text; }}

EXPORT void {name}_set_num_threads(int32_t number) {{
  __atomic_store_n(&wanted_threads, number, __ATOMIC_RELAXED);
}}

EXPORT const char *{name}_arch(void) {{
  pthread_once(&choosing, choose);
  return {archs};
}}
"""


def _bound(interface: Interface) -> str:
    """The functions for weights that are bound, if there are weights."""
    name, first, count = interface.name, interface.weights.start, len(interface.weights)
    if not count:
        return ""
    place = f"{first}, {count}"
    return f"""\
struct {name}_bound {{ void *weights[{count}]; }};

EXPORT {weight_names(interface)}
EXPORT int32_t {name}_bind(void *const *weights, const size_t *counts,
                           struct {name}_bound **bound) {{
  error_text[0] = 0;
  if (bound) *bound = NULL;
  int32_t status = check_weights("{name}", expected, weights, counts, {place}, bound);
  if (status) return status;
  struct {name}_bound *made = malloc(sizeof *made);
  if (!made) return fail(STATUS_NO_MEMORY, "{name}: no memory");
  memcpy(made->weights, weights, sizeof made->weights);
  *bound = made;
  return STATUS_OK;
}}

EXPORT int32_t {name}_run(
    struct {name}_bound *bound,
    {parameters(interface, numbered=True, bound=True)}) {{
{arrays_and_counts(interface, bound=True)}  error_text[0] = 0;
  if (!bound) return fail(STATUS_NULL_POINTER, "{name}: bound is NULL");
  memcpy(arrays + {first}, bound->weights, sizeof bound->weights);
  int32_t status =
      check_others("{name}", expected, arrays, counts, {len(interface.arrays)}, {place});
  return status ? status : start(arrays);
}}

EXPORT int32_t {name}_unbind(struct {name}_bound *bound) {{
  free(bound);
  return STATUS_OK;
}}

"""
