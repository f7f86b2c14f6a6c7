"""Vectors, labels, texts and models on disk: no file can run code, and no output is ever half-written."""

from entourage.stores.atomic import check_free, new_folder, whole_file, write_json
from entourage.stores.models import add_weights, model_config, read_model, usable_model, write_model
from entourage.stores.paths import StrPath
from entourage.stores.streaming import check_streamable, labels_beside, write_blocks
from entourage.stores.vectors import check_writable_like, encoder_of_vectors, read_vectors, write_like

__all__ = [
    "StrPath",
    "add_weights",
    "check_free",
    "check_streamable",
    "check_writable_like",
    "encoder_of_vectors",
    "labels_beside",
    "model_config",
    "new_folder",
    "read_model",
    "read_vectors",
    "usable_model",
    "whole_file",
    "write_blocks",
    "write_json",
    "write_like",
    "write_model",
]
