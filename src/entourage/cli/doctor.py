"""`entourage doctor`."""

from entourage.cli.options import Json, Labels, Vectors
from entourage.cli.output import facts, print_report

__all__ = ["doctor"]


def doctor(vectors: Vectors, labels: Labels = None, as_json: Json = False) -> None:
    """Predict before any training whether refinement will help, and why.

    Labels are optional.
    """
    from entourage.runtime.progress import terminal_progress
    from entourage.stores import read_vectors

    items = read_vectors(vectors, labels=labels)

    from entourage.comparison.diagnosis import examine

    with terminal_progress(log=not as_json, patient=True) as progress:
        diagnosis = examine(items, progress=progress)
    print_report(diagnosis.document(), as_json, facts(diagnosis.protocol), diagnosis.table(), diagnosis.verdict)
