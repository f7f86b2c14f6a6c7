import numpy as np
from matplotlib.colors import to_hex

from entourage.figures.retrieval import RIGHT, WRONG, choose_queries, draw_retrieval
from entourage.values import Images, Neighbors


def sheet():
    pixels = np.arange(4, dtype=np.uint8)[:, None, None] * np.full((4, 8, 8), 60, np.uint8)
    images = Images(pixels, ["a", "a", "b", "b"])
    similarities = np.tile([0.9, 0.8], (4, 1))
    before = Neighbors([[2, 1], [0, 2], [3, 0], [2, 0]], similarities)
    after = Neighbors([[1, 2], [0, 3], [3, 1], [2, 1]], similarities)
    gains = np.array([0.5, 0.0, -0.25, 0.0])
    return draw_retrieval(images, before, after, np.array([0, 2]), gains, "Title")


def test_each_query_shows_itself_and_its_neighbours_before_and_after():
    shown = [int(picture.get_array().max()) // 60 for picture in sheet().axes[0].images]
    assert shown == [0, 2, 1, 1, 2, 2, 3, 0, 3, 1]


def test_frames_and_marks_tell_right_from_wrong():
    axes = sheet().axes[0]
    frames = [to_hex(frame.get_edgecolor()) for frame in axes.patches]
    assert frames == [WRONG, RIGHT, RIGHT, WRONG, RIGHT, WRONG, RIGHT, WRONG]
    marks = [text.get_text() for text in axes.texts if text.get_text() in "✓✗"]
    assert marks == ["✗", "✓", "✓", "✗", "✓", "✗", "✓", "✗"]
    assert len({frame.get_linestyle() for frame in axes.patches}) == 2


def test_captions_name_the_label_and_the_change():
    texts = [text.get_text() for text in sheet().axes[0].texts]
    assert {"Title", "query", "before", "after", "a\n▲ +50 AP@R", "b\n▼ -25 AP@R"} <= set(texts)


def test_nothing_reaches_over_the_edge():
    figure = sheet()
    figure.canvas.draw()
    width, height = figure.get_size_inches() * figure.dpi
    for text in figure.axes[0].texts:
        box = text.get_window_extent()
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height, text.get_text()


def test_chosen_queries_are_real_gains_and_losses():
    gains = np.array([0.0, 0.3, -0.1, 0.3, -0.4, 0.0])
    assert choose_queries(gains, 3, 3).tolist() == [1, 3, 4, 2]
    assert choose_queries(np.zeros(5), 2, 2).tolist() == []
