"""What `entourage refine --run` is told besides, and keeps: labels for scores, pictures or texts to show."""

from dataclasses import dataclass
from pathlib import Path

from entourage.errors import InputError

__all__ = ["KeptRun"]


@dataclass(frozen=True)
class KeptRun:
    """The options of `refine` that concern --run, as they were given; folder is None where nothing is kept."""

    folder: Path | None
    labels: str | None
    context_labels: str | None
    pictures: str | None
    split: str
    root: Path | None
    data_options: list[str] | None
    texts: Path | None
    context_texts: Path | None

    def check(self, vectors: Path, context: Path | None, *, overwrite: bool) -> None:
        """Refuse options that would do nothing, and a folder that is in the way."""
        from entourage.cli.options import is_same
        from entourage.stores import check_free

        alone = {"--labels": self.labels, "--context-labels": self.context_labels, "--pictures": self.pictures}
        alone |= {"--texts": self.texts, "--context-texts": self.context_texts}
        self._refuse(alone if self.folder is None else {}, "there is no --run to keep it in; add --run")
        of_gallery = {"--context-labels": self.context_labels, "--context-texts": self.context_texts}
        self._refuse(of_gallery if context is None else {}, "there is no gallery; add --context")
        again = f"the gallery {context} is VECTORS, which have --labels and --texts; name another gallery"
        self._refuse(of_gallery if is_same(context, vectors) else {}, again)
        of_texts = {"--context-texts": self.context_texts}
        self._refuse(of_texts if self.texts is None else {}, "there are no texts of VECTORS; add --texts")
        of_pictures = {"--root": self.root, "--data-option": self.data_options}
        self._refuse(of_pictures if self.pictures is None else {}, "there are no pictures; add --pictures")
        if self.pictures is not None and self.texts is not None:
            raise InputError(
                f"--pictures is {self.pictures} and --texts {self.texts}; wanted one of them: leave one out"
            )
        if self.folder is not None:
            check_free(self.folder, overwrite=overwrite)

    def read(self, vectors: Path, context: Path | None) -> dict | None:
        """The items and the gallery with what is known of them, and how they look; None where nothing is kept."""
        if self.folder is None:
            return None
        from entourage.runs.media import Looks, check_pictures
        from entourage.stores import read_vectors
        from entourage.stores.texts import read_texts

        items = read_vectors(vectors, labels=self.labels, exclusions=True)
        gallery = None if context is None else read_vectors(context, labels=self.context_labels, exclusions=True)
        texts, context_texts = (
            None if path is None or of is None else read_texts(path, of)
            for path, of in ((self.texts, items), (self.context_texts, gallery))
        )
        looks = Looks(self._source(), texts, context_texts)
        if looks.pictures is not None:
            check_pictures(looks.pictures, items, gallery)  # so that a wrong name is told before the work
        return {"items": items, "context": gallery, "looks": looks}

    def keep(self, refiner, known: dict, steps: int | None, model: str, *, overwrite: bool, progress):
        """The Refinement, kept."""
        from entourage.runs.refine import keep_refinement

        options = {"steps": steps, "protocol": {"refiner": model}, "overwrite": overwrite, "progress": progress}
        return keep_refinement(self.folder, refiner, **known, **options)

    def keep_groups(self, refined, known: dict, told: dict, groups: dict, **options):
        """The Refinement by the network of a run, kept; told: the protocol as it is printed."""
        from entourage.runs.refine import keep_refined

        passed = f"{told['steps']} message-passing step{'s' * (told['steps'] > 1)}"
        protocol = {"context": f"{told['context']}, labels unused", "refiner": f"network of {told['model']}, {passed}"}
        protocol |= {name: told[name] for name in ("groups", "group_size", "k1") if name in told}
        settings = {"network": {"run": told["model"], **groups}}
        items, after = known["items"], known["items"].replace_vectors(refined)
        options |= {"protocol": protocol, "settings": settings, "looks": known["looks"]}
        return keep_refined(self.folder, items, after, **options)

    def _source(self):
        from entourage.data import DATASETS
        from entourage.runs.media import PictureSource
        from entourage.runtime.config import from_pairs

        if self.pictures is None:
            return None
        by_path = self.pictures not in DATASETS  # kept so that it is found from another folder too
        source = str(Path(self.pictures).absolute()) if by_path else self.pictures
        root = None if self.root is None else str(self.root.absolute())
        return PictureSource(source, root, self.split, from_pairs(self.data_options or []))

    def _refuse(self, options: dict, reason: str) -> None:
        for option, value in options.items():
            if value is not None:
                raise InputError(f"{option} is {value} but {reason} or leave it out")
