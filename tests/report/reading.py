"""A page as a reader's tools see it: elements in order, with their attributes and texts."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise

VOID = {"meta", "link", "img", "source", "br", "path", "rect"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text inside, in one line."""
        return " ".join("".join(self.texts).split())

    @property
    def kinds(self) -> set[str]:
        return set(self.attributes.get("class", "").split())


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.elements, self.open = [], []

    def handle_starttag(self, tag, attributes):
        element = Element(tag, {name: value or "" for name, value in attributes})
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attributes):
        self.elements.append(Element(tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1].tag == tag, f"</{tag}> closes {self.open and self.open[-1].tag}"
        self.open.pop()

    def handle_data(self, data):
        for element in self.open:
            element.texts.append(data)


def read(html: str) -> list[Element]:
    """Every element of a document or a part of one, in order; one that is not closed in order fails."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert not reader.open, f"<{reader.open[-1].tag}> is never closed"
    return reader.elements


def find(html: str, tag: str, kind: str | None = None) -> list[Element]:
    return [each for each in read(html) if each.tag == tag and (kind is None or kind in each.kinds)]


def check_whole(html: str) -> None:
    """What every report keeps to: nothing from elsewhere, nothing that runs, and words for all that is only seen."""
    elements = read(html)
    assert html.startswith("<!DOCTYPE html>")
    for each in elements:
        for name in ("src", "href", "srcset"):
            target = each.attributes.get(name, "data:")
            assert target.startswith(("data:", "#")), f"{each.tag} refers to {target[:60]}"
        assert each.tag not in ("script", "iframe", "object")
        assert not any(name.startswith("on") for name in each.attributes)
        assert each.tag != "img" or each.attributes["alt"]
    names = [each.attributes["id"] for each in elements if "id" in each.attributes]
    assert len(names) == len(set(names))
    links = {each.attributes["href"][1:] for each in elements if each.tag == "a"}
    assert links <= set(names)
    levels = [int(each.tag[1]) for each in elements if each.tag in ("h1", "h2", "h3", "h4")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))  # no level is left out
    assert sum(each.tag == "caption" for each in elements) == sum(each.tag == "table" for each in elements)
