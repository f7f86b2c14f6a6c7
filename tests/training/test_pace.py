"""Progress reports: the metric by its name, and the speed, renewed now and then so that titles do not flicker."""

from entourage.training.pace import Pace


def test_the_speed_appears_after_ten_seconds_and_stays_until_the_next_look():
    now, seen = [0.0], []
    pace = Pace("training", "images", "R@1", 3, lambda *call: seen.append(call), clock=lambda: now[0])
    pace.start(1, 4, None)
    for _ in range(4):
        now[0] += 6
        pace.step(120)
    assert seen == [
        ("training (epoch 1/3)", 1, 12),
        ("training (epoch 1/3, 20 images/s)", 2, 12),
        ("training (epoch 1/3, 20 images/s)", 3, 12),
        ("training (epoch 1/3, 20 images/s)", 4, 12),
    ]
    assert (pace.seconds, pace.items, pace.batches) == (24, 480, 4)
    pace.start(2, 4, 0.5)
    now[0] += 60
    pace.step(120)
    assert seen[-1] == ("training (epoch 2/3, best R@1 50.0 %, 2 images/s)", 5, 12)
    pace.finish(1, 0.5)
    assert seen[-1] == ("training (kept epoch 1, R@1 50.0 %)", 12, 12)


def test_without_anyone_to_tell_it_only_counts():
    pace = Pace("training", "items", "score", 1, None, clock=lambda: 0.0)
    pace.start(1, 1, None)
    pace.step(7)
    pace.finish(1, None)
    assert pace.items == 7
