"""A page in the browser: the items of a refinement on a map, before and after, and live queries to them.

A run is opened (opening.py) as a Scene (scene.py), whose parts are computed when they are first asked for and answered
over HTTP by app.py; page/ is what the browser gets, and export.py writes both into one file.
"""

from entourage.explorer.opening import ExploreRequest
from entourage.explorer.start import explore

__all__ = ["ExploreRequest", "explore"]
