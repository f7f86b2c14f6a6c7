"""A gallery whose items come and go, refined again only where a change reaches; kept on disk."""

from entourage.refiner.gallery.gallery import Gallery
from entourage.refiner.gallery.moved import Changes
from entourage.refiner.gallery.view import Found, Report

__all__ = ["Changes", "Found", "Gallery", "Report"]
