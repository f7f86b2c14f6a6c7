"""What is costly and asked for more than once: made when it is first asked for, held from then on."""

from collections.abc import Callable

__all__ = ["Once"]


class Once(dict):
    """Things by name, each made once.

    >>> once = Once()
    >>> once("encoder", lambda: "loaded"), once("encoder", lambda: "loaded again")
    ('loaded', 'loaded')
    """

    def __call__(self, name: str, make: Callable):
        if name not in self:
            self[name] = make()
        return self[name]
