"""What a refinement is asked for: files in, files out, the model, and what is known of the items."""

from dataclasses import dataclass, field
from pathlib import Path

from entourage.errors import InputError
from entourage.evaluation.names import check_depth
from entourage.neighbors import own_gallery_rows
from entourage.runs.media import Media, PictureSource
from entourage.runs.picture_choice import pictures_of
from entourage.stores import check_apart, check_folder, check_kept, check_writable_like, read_vectors
from entourage.stores.columns import FORMATS, columns_where_present
from entourage.stores.confidences import check_confidence_file
from entourage.stores.labels import columns_of_table
from entourage.stores.reading import existing, same_file
from entourage.stores.tables import named_column
from entourage.stores.texts import read_texts
from entourage.values import Embeddings

__all__ = ["RefineRequest"]


@dataclass(frozen=True)
class RefineRequest:
    """One call of `runs.refine`; the fields are the options of `entourage refine`, which messages name them by."""

    vectors: Path
    """File of the N items to refine: .npy, .npz or .parquet."""
    out: Path | None = None
    """File for the refined vectors, in the format of `vectors`; not needed with `run`."""
    model: Path | None = None
    """A folder of `entourage fit`, or a run of the system intra-batch. None: the universal refiner."""
    context: Path | None = None
    """File of the raw vectors of a gallery to find neighbours in. None: the items themselves."""
    context_out: Path | None = None
    """File for the refined gallery, in the format of `context`."""
    confidence: Path | None = None
    """A .csv for the confidence that each item has a match in the gallery, or among the others where there is none."""
    context_by: str | None = None
    """With a run as the model: how contexts are found. None: reciprocal."""
    context_size: int | None = None
    """With a run as the model: items in a group. None: the default of that way to find contexts."""
    k1: int | None = None
    """With a run as the model: nearest neighbours among which reciprocal ones are looked for. None: 30."""
    n_clusters: int | None = None
    """With a run as the model: number of clusters. None: an eighth of the items."""
    neighbors: int | None = None
    """Without a model: number of neighbours an item attends to. None: 12."""
    steps: int | None = None
    """Stop after this many steps. None: all."""
    run: Path | None = None
    """Folder to keep all of it in, a refinement run. The fields below are for such a run alone."""
    labels: str | None = None
    """Labels of the items, as `stores.read_vectors` takes them: for scores and figures, never used to refine."""
    context_labels: str | None = None
    """Labels of the gallery."""
    at: tuple[int, ...] | None = None
    """With labels: at which k to measure recall@k, precision@k, nDCG@k and MRR@k. None: the usual ones."""
    label_column: str | None = None
    """The column of the labels in their files. None: one that is recognised."""
    id_column: str | None = None
    """The column of the ids, in every file that has it. None: one that is recognised."""
    pictures: str | None = None
    """The images that the vectors were computed from: a dataset, a folder or a .csv."""
    split: str | None = None
    """The split of the pictures; of queries and a gallery "query,gallery". None: the one that the vectors match."""
    root: Path | None = None
    """The folder of datasets, or the folder that paths in a .csv are relative to."""
    path_column: str | None = None
    """The column of the paths in a .csv of pictures. None: one that is recognised."""
    data_options: dict = field(default_factory=dict)
    """Options of the dataset."""
    texts: Path | None = None
    """File of the texts that the vectors were computed from."""
    context_texts: Path | None = None
    """File of the texts of the gallery."""
    overwrite: bool = False
    """Whether existing outputs are replaced."""

    @property
    def gallery(self) -> Path | None:
        """The file of the gallery; None where it is that of the items, or none is named."""
        return None if self.context is None or same_file(self.context, self.vectors) else self.context

    def check(self) -> None:
        """Refuse options that would do nothing, and outputs that could not be written: before any work."""
        self._check_needed()
        for path in (self.vectors, self.context):
            if path is not None:
                existing(path, FORMATS, "vectors")  # before outputs: a name that is mistyped comes first
        self._check_outputs()
        if self.model is not None and self.neighbors is not None:
            raise InputError(
                f"--neighbors is {self.neighbors} but {self.model} was fitted with its own; leave it out or fit again"
            )

    def read(self) -> tuple[Embeddings, Embeddings | None]:
        """The items and the gallery, each read once; with labels, cameras and sequences where a run keeps them."""
        known = self.run is not None
        columns = {"id_column": self.id_column, "label_column": self.label_column}
        items = read_vectors(self.vectors, labels=self.labels if known else False, exclusions=known, **columns)
        context = None
        if self.gallery is not None:
            columns, labels = columns_where_present(self.gallery, self.context_labels, **columns), self.context_labels
            context = read_vectors(self.gallery, labels=labels if known else False, exclusions=known, **columns)
        self._check_at(items, items if context is None else context)
        return items, context

    def media(self, items: Embeddings, context: Embeddings | None) -> Media:
        """Where the pictures or texts of the items come from; pictures that are not there are refused."""
        texts = None if self.texts is None else read_texts(self.texts, items)
        context_texts = (
            None if self.context_texts is None or context is None else read_texts(self.context_texts, context)
        )
        pictures = None
        if self.pictures is not None:
            source = PictureSource.located(self.pictures, self.root, options=self._picture_options(self.pictures))
            pictures = pictures_of(source, items, context, split=self.split)
        return Media(pictures, texts, context_texts)

    def _picture_options(self, pictures: str) -> dict:
        """Options of the pictures' loader: those given, and the named columns as far as a table has them."""
        given = (self.path_column, self.label_column, self.id_column)
        names = columns_of_table(pictures, *given) if pictures.lower().endswith(".csv") else []
        shared = {"label_column": self.label_column, "id_column": self.id_column}
        found = {name: value for name, value in shared.items() if value and named_column(names, value)}
        return found | ({"path_column": self.path_column} if self.path_column else {}) | self.data_options

    def _check_at(self, items: Embeddings, gallery: Embeddings) -> None:
        if self.at is None:
            return
        if items.labels is None or gallery.labels is None:
            raise InputError(
                f"--at is {_listed(self.at)} but there are no labels to score by; add --labels, for a gallery "
                "--context-labels too, or leave it out"
            )
        check_depth(self.at, len(gallery) - bool((own_gallery_rows(items, gallery) >= 0).all()))

    def _check_needed(self) -> None:
        of_run = {
            "--labels": self.labels,
            "--label-column": self.label_column,
            "--context-labels": self.context_labels,
            "--at": None if self.at is None else _listed(self.at),
            "--pictures": self.pictures,
            "--texts": self.texts,
            "--context-texts": self.context_texts,
        }
        of_gallery = {"--context-labels": self.context_labels, "--context-texts": self.context_texts}
        of_pictures = {
            "--split": self.split,
            "--path-column": self.path_column,
            "--root": self.root,
            "--data-option": self.data_options or None,
        }
        if self.run is None:
            _refuse(of_run, "there is no --run to keep it in; add --run")
        if self.context is None:
            _refuse(of_gallery, "there is no gallery; add --context")
        elif self.gallery is None:
            _refuse(
                of_gallery,
                f"the gallery {self.context} is VECTORS, which have --labels and --texts; name another gallery",
            )
        if self.texts is None:
            _refuse({"--context-texts": self.context_texts}, "there are no texts of VECTORS; add --texts")
        if self.pictures is None:
            _refuse(of_pictures, "there are no pictures; add --pictures")
        elif self.texts is not None:
            raise InputError(
                f"--pictures is {self.pictures} and --texts {self.texts}; wanted one of them: leave one out"
            )

    def _check_outputs(self) -> None:
        if self.out is None and self.run is None:
            raise InputError(
                "there is nothing to write to; wanted --out for the refined vectors, or --run to keep it all"
            )
        files = {"--out": self.out, "--context-out": self.context_out, "--confidence": self.confidence}
        check_apart(files | {"--run": self.run})
        given = (self.vectors, self.context, self.model, self.labels, self.context_labels, self.texts)
        check_kept((*files.values(), self.run), (*given, self.context_texts, self.pictures, self.root))
        if self.run is not None:
            check_folder(self.run, overwrite=self.overwrite)
        if self.out is not None:
            check_writable_like(self.vectors, self.out, overwrite=self.overwrite)
        if self.context_out is not None:
            self._check_context_out(self.context_out)
        if self.confidence is not None:
            check_confidence_file(self.confidence, overwrite=self.overwrite)

    def _check_context_out(self, context_out: Path) -> None:
        if self.context is None:
            raise InputError(f"--context-out is {context_out} but there is no gallery; add --context or leave it out")
        check_writable_like(self.context, context_out, overwrite=self.overwrite)


def _refuse(options: dict, reason: str) -> None:
    for option, value in options.items():
        if value is not None:
            raise InputError(f"{option} is {value} but {reason} or leave it out")


def _listed(cutoffs: tuple[int, ...]) -> str:
    return ",".join(map(str, cutoffs))
