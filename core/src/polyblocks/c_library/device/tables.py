"""Launch plans as initialized tables of C, see ``program.h``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from polyblocks.artifact import Artifact
from polyblocks.c_library.interface import places
from polyblocks.c_library.source import c_string
from polyblocks.runtime.device.plan import LaunchPlan, read_plan
from polyblocks.runtime.device.tensor_map import IM2COL, TensorMap

_KINDS = {"argument": "ROW", "workspace": "WORKSPACE", "status": "STATUS_WORD", "value": "VALUE",
          "map": "MAP_WORD"}  # fmt: skip


def plan_tables(number: int, artifact: Artifact, stored: Sequence[int]) -> tuple[str, str]:
    """The plan of one architecture.

    Args:
        number: its place among the plans of the library.
        artifact: for that architecture alone.
        stored: for each of its stored arrays its number among those of the library.

    Returns:
        Definitions of tables, and an initializer of ``struct plan`` that names them.
    """
    plan = read_plan(artifact.manifest)
    slots = [f"{{{_KINDS[slot.kind]}, {slot.row}, UINT64_C({slot.number})}}" for slot in plan.slots]
    tables = {
        "slots": ("struct slot", slots),
        "rows": ("struct row", _rows(plan, artifact, stored)),
        "checks": ("char *const", [c_string(text) for text in plan.checks]),
        "maps": ("struct tensor_map", [_tensor_map(each) for each in plan.tensor_maps]),
        "launches": ("struct launch", _launches(number, plan)),
    }
    lines = [
        f"static const uint32_t operands_{number}_{k}[] = {{{_numbers(launch.slots)}}};"
        for k, launch in enumerate(plan.launches)
        if launch.slots
    ]
    lines += [_table(f"{name}_{number}", *table) for name, table in tables.items() if table[1]]
    plan_row = initializer(
        arch=c_string(artifact.manifest["arch"]),
        launch_count=len(plan.launches),
        slot_count=len(plan.slots),
        row_count=len(plan.rows),
        check_count=len(plan.checks),
        map_count=len(plan.tensor_maps),
        **{name: f"{name}_{number}" if table[1] else "NULL" for name, table in tables.items()},
        workspace_bytes=plan.workspace_bytes,
        has_status=int(plan.has_status),
    )
    return "\n".join(lines), plan_row


def initializer(**fields: str | int) -> str:
    """``{.field = value, …}``."""
    return "{" + ", ".join(f".{name} = {value}" for name, value in fields.items()) + "}"


def _rows(plan: LaunchPlan, artifact: Artifact, stored: Sequence[int]) -> list[str]:
    found = places(artifact)
    updated = {row["updates"] for row in plan.rows if row["updates"] is not None}
    lines = []
    for k, (row, number, size) in enumerate(zip(plan.rows, plan.numbers, plan.sizes, strict=True)):
        kind, index = found[number]
        is_output = row["role"] == "output"
        home = k if row["updates"] is None else row["updates"]
        lines.append(
            initializer(
                is_stored=int(kind == "stored"),
                index=stored[index] if kind == "stored" else index,
                home=home,
                bytes=size,
                is_read=int(not is_output),
                is_written=int(home == k and (is_output or k in updated)),
            )
        )
    return lines


def _launches(number: int, plan: LaunchPlan) -> list[str]:
    return [
        initializer(
            kernel=c_string(launch.kernel),
            grid=f"{{{_numbers(launch.grid)}}}",
            block=f"{{{_numbers(launch.block)}}}",
            shared_bytes=launch.shared_bytes,
            count=len(launch.slots),
            slots=f"operands_{number}_{k}" if launch.slots else "NULL",
        )
        for k, launch in enumerate(plan.launches)
    ]


def _tensor_map(described: TensorMap) -> str:
    corners = {
        name: f"{{{_numbers(getattr(described, name))}}}"
        for name in ("lower", "upper", "steps")
        if described.kind == IM2COL
    }
    return initializer(
        is_im2col=int(described.kind == IM2COL),
        element_bytes=described.element_bytes,
        rank=len(described.extents),
        extents=f"{{{_numbers(described.extents)}}}",
        strides=f"{{{_numbers(described.strides)}}}" if described.strides else "{0}",
        box=f"{{{_numbers(described.box)}}}",
        **corners,
    )


def _table(name: str, of: str, rows: Iterable[str]) -> str:
    return f"static const {of} {name}[] = {{\n  " + ",\n  ".join(rows) + "};"


def _numbers(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))
