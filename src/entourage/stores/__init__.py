"""Vectors, labels, texts and models at rest: no file can run code, and no output is ever half-written."""

from entourage.stores.atomic import Outputs, new_folder, whole_file, write_json
from entourage.stores.databases import is_store
from entourage.stores.databases import open_store as open
from entourage.stores.models import add_weights, model_config, read_model, usable_model, write_model
from entourage.stores.paths import StrPath
from entourage.stores.replacing import check_apart, check_file, check_folder, check_kept
from entourage.stores.streaming import check_streamable, is_folder, labels_beside, write_blocks, write_parquet_folder
from entourage.stores.vectors import (
    check_writable_like,
    encoder_of_vectors,
    read_vectors,
    warn_if_one_is_refined,
    write_like,
)
from entourage.stores.working import WorkFolder

__all__ = [
    "Outputs",
    "StrPath",
    "WorkFolder",
    "add_weights",
    "check_apart",
    "check_file",
    "check_folder",
    "check_kept",
    "check_streamable",
    "check_writable_like",
    "encoder_of_vectors",
    "is_folder",
    "is_store",
    "labels_beside",
    "model_config",
    "new_folder",
    "open",
    "read_model",
    "read_vectors",
    "usable_model",
    "warn_if_one_is_refined",
    "whole_file",
    "write_blocks",
    "write_json",
    "write_like",
    "write_model",
    "write_parquet_folder",
]
