"""Values to and from disk. Nothing here can run code from a file, and no output is ever half-written."""

from entourage.store.atomic import check_free, new_folder, whole_file
from entourage.store.vectors import check_writable_like, read_vectors, write_like

__all__ = ["check_free", "check_writable_like", "new_folder", "read_vectors", "whole_file", "write_like"]
