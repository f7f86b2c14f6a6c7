"""What a student imitates, against plain loops."""

import math

import pytest
import torch

from entourage.systems.intra_batch.distillation import class_probability_loss, feature_loss, relation_loss

pytestmark = pytest.mark.usefixtures("one_thread")

B, D = 5, 4


def pair(width=D) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    return torch.randn(B, width, generator=draw), torch.randn(B, width, generator=draw)


def unit(vector: torch.Tensor) -> torch.Tensor:
    return vector / vector.norm()


def huber(difference: float) -> float:
    size = abs(difference)
    return size**2 / 2 if size < 1 else size - 0.5


@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_class_probabilities(temperature):
    student, teacher = pair(7)
    total = 0.0
    for i in range(B):
        p, q = (torch.tensor([math.exp(x / temperature) for x in logits[i].tolist()]) for logits in (teacher, student))
        p, q = p / p.sum(), q / q.sum()
        total += sum(float(p[c] * (p[c] / q[c]).log()) for c in range(7))
    wanted = temperature**2 * total / B
    assert class_probability_loss(student, teacher, temperature).item() == pytest.approx(wanted, rel=1e-4)


def test_features():
    student, teacher = pair()
    student, teacher = 3 * student, 10 * teacher  # only the direction counts
    terms = [
        huber(float(math.sqrt(D) * (unit(student[i])[c] - unit(teacher[i])[c]))) for i in range(B) for c in range(D)
    ]
    assert feature_loss(student, teacher).item() == pytest.approx(sum(terms) / len(terms), rel=1e-4)


def test_relations():
    def relations(x):
        x = [unit(row) for row in x]
        distances = [float((x[i] - x[j]).norm()) for i in range(B) for j in range(i + 1, B)]
        mean = sum(distances) / len(distances)
        angles = []
        for j in range(B):
            for i in range(B):
                for k in range(B):
                    same = j in (i, k)
                    angles.append(0.0 if same else float(unit(x[i] - x[j]) @ unit(x[k] - x[j])))
        return [distance / mean for distance in distances], angles

    student, teacher = pair()
    (distances, angles), (taught_distances, taught_angles) = relations(student), relations(teacher)
    by_distance = [huber(a - b) for a, b in zip(distances, taught_distances, strict=True)]
    by_angle = [huber(a - b) for a, b in zip(angles, taught_angles, strict=True)]
    wanted = sum(by_distance) / len(by_distance) + 2 * sum(by_angle) / len(by_angle)
    assert relation_loss(student, teacher).item() == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("loss", [class_probability_loss, feature_loss, relation_loss])
def test_a_student_like_its_teacher_has_nothing_to_learn(loss):
    student, _ = pair()
    assert loss(student, student.clone()).item() == pytest.approx(0, abs=1e-6)


def test_relations_do_not_depend_on_where_the_vectors_point():
    student, _ = pair()
    turn = torch.linalg.qr(torch.randn(D, D, generator=torch.Generator().manual_seed(1)))[0]
    assert relation_loss(student, student @ turn).item() == pytest.approx(0, abs=1e-5)
    assert feature_loss(student, student @ turn).item() > 0.1


def test_copies_have_a_finite_gradient():
    student = torch.ones(3, D, requires_grad=True)
    relation_loss(student, pair()[1][:3]).backward()
    assert student.grad.isfinite().all()
