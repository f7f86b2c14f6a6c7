"""Whether a figure can be read: nothing cut off, nothing over something else, no letter too small."""

from matplotlib.text import Text

SMALLEST = 7  # points


def texts(figure) -> list[Text]:
    """What is written, tick labels aside: some of those lie beyond the limits and are not drawn."""
    axes = [axis for each in figure.axes for axis in (each.xaxis, each.yaxis)]
    ticks = {label for axis in axes for label in axis.get_ticklabels()}
    return [text for text in set(figure.findobj(Text)) if text.get_text() and text.get_visible() and text not in ticks]


def check_legible(figure) -> None:
    """No text reaches over the edge of the figure or over another text, and none is smaller than SMALLEST."""
    figure.draw_without_rendering()  # lays it out
    width, height = figure.get_size_inches() * figure.dpi
    boxes = []
    for text in texts(figure):
        assert text.get_fontsize() >= SMALLEST, text.get_text()
        box = text.get_window_extent()
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1, text.get_text()
        boxes.append((text.get_text(), box))
    for number, (said, box) in enumerate(boxes):
        for other, where in boxes[number + 1 :]:
            apart = box.x1 <= where.x0 + 1 or where.x1 <= box.x0 + 1 or box.y1 <= where.y0 + 1 or where.y1 <= box.y0 + 1
            assert apart, f"{said!r} over {other!r}"
