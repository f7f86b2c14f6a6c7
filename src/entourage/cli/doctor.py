"""`entourage doctor`."""

from entourage.cli.options import IdColumn, Json, LabelColumn, Labels, Vectors
from entourage.cli.output import facts, print_report

__all__ = ["doctor"]


def doctor(
    vectors: Vectors,
    labels: Labels = None,
    label_column: LabelColumn = None,
    id_column: IdColumn = None,
    as_json: Json = False,
) -> None:
    """Predict whether refinement will help, and why.

    It looks at VECTORS before any training. Labels are optional.
    """
    from entourage.runtime.progress import terminal_progress
    from entourage.stores import read_vectors

    items = read_vectors(vectors, labels=labels, id_column=id_column, label_column=label_column)

    from entourage.comparison.diagnosis import examine

    with terminal_progress(log=not as_json, patient=True) as progress:
        diagnosis = examine(items, progress=progress)
    print_report(diagnosis.document(), as_json, facts(diagnosis.protocol), diagnosis.table(), diagnosis.verdict)
