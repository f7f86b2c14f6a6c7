"""Which versions of which libraries a result was made with."""

import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from entourage import __version__

__all__ = ["library_versions"]

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "torch", "transformers", "pytorch-metric-learning")


def library_versions() -> dict[str, str]:
    """Versions by name, of what is installed; no library is imported for it."""
    versions = {"entourage": __version__, "python": platform.python_version()}
    for library in _LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[library] = version(library)
    return versions
