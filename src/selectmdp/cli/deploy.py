"""Commands for a policy that goes elsewhere: `export` it, write its model `card`."""

from pathlib import Path
from typing import Annotated, Any

import tyro

from selectmdp.cli.options import Flag

Run = Annotated[Path, tyro.conf.Positional]
Out = tyro.conf.arg(aliases=["-o"])


def export(
    run: Run,
    /,
    out: Annotated[Path, Out] = Path("policy.onnx"),
    num_select: int | None = None,
    json: Flag = False,
) -> None:
    """Write a trained policy as one ONNX graph: any N, U and batch, all K picks.

    Args:
        run: folder of a training run, or of one of its checkpoints.
        out: the file to write.
        num_select: K, if not that of the training; phases then borrow the nearest parameters.
        json: print one object instead of a table.
    """
    from selectmdp import console
    from selectmdp.export import export_run

    model = export_run(run, out, num_select)
    from onnx.helper import tensor_dtype_to_np_dtype as dtype

    parts = [
        {
            "name": each.name,
            "way": way,
            "dtype": dtype(each.type.tensor_type.elem_type).name,
            "shape": [_dimension(part) for part in each.type.tensor_type.shape.dim],
            "about": each.doc_string,
        }
        for way, several in (("in", model.graph.input), ("out", model.graph.output))
        for each in several
    ]
    if json:
        console.as_json({"file": str(out), "bytes": out.stat().st_size, "tensors": parts})
        return
    console.table(
        f"{out}, {out.stat().st_size:,} bytes",
        ("name", "", "dtype", "shape", "what it is"),
        [
            (
                each["name"],
                each["way"],
                each["dtype"],
                ", ".join(map(str, each["shape"])),
                each["about"],
            )
            for each in parts
        ],
        wrap=True,
    )


def card(run: Run, /, out: Annotated[Path | None, Out] = None) -> None:
    """The model card of a run, in Markdown: task, training, evaluation, limits, how to load.

    Args:
        run: folder of a training run, or of one of its checkpoints.
        out: the file to write; printed if not given.
    """
    from selectmdp.card import model_card
    from selectmdp.files import write_whole

    text = model_card(run)
    if out is None:
        print(text, end="")
    else:
        write_whole(out, text.encode())


def _dimension(part: Any) -> int | str:
    return part.dim_param or part.dim_value
