"""The service: a gallery behind an HTTP interface, in one process."""

from entourage.serve.app import make_app
from entourage.serve.limits import Limits

__all__ = ["Limits", "make_app"]
