"""What the papers print, and how each row is made: papers.toml holds together."""

import dataclasses
import math

import pytest

from entourage.data import DATASETS
from entourage.errors import InputError
from entourage.runs.reproduce.drawing import DRAWN
from entourage.runs.reproduce.measuring import MEASURES
from entourage.runs.reproduce.scale import Scale
from entourage.runs.reproduce.tables import papers, read_papers, table_named, tables
from entourage.systems import SYSTEMS
from entourage.systems.intra_batch.contexts import CONTEXTS

ALL = [(scale, table) for scale in ("full", "small", "quick") for table in tables(scale).values()]
LISTED = {
    "attend": "1 2 3 4 fig3 fig4 s-fig1 s-fig5 s-fig6 s-fig7 s-fig8 s-fig9",
    "intra-batch": "1 2 3 4 6 7 8 fig4 fig5 fig7 fig13 fig14 fig15 fig16 fig17 fig18",
    "divide": "s1 s2 fig-s1 fig-s2",
    "cross-image": "s1 s2 s3 s4 s5",
}


@pytest.mark.parametrize("paper", LISTED)
def test_every_table_and_figure_is_there_by_its_name(paper):
    for name in LISTED[paper].split():
        assert table_named(f"{paper}-{name}").paper == paper
    assert paper in papers()


@pytest.mark.parametrize(("scale", "table"), ALL, ids=lambda value: getattr(value, "id", value))
def test_every_row_can_be_made(scale, table):
    """Each recipe gives settings of its system, for every dataset, and names what is there."""
    at = Scale(scale)
    assert table.measure in MEASURES and (not table.draw or table.draw in DRAWN)
    assert set(table.datasets) <= set(DATASETS) and table.page > 0 and table.made
    assert len({row.name for row in table.rows}) == len(table.rows)
    for row in table.made:
        recipe = at.recipe(row.recipe)
        assert recipe.system in SYSTEMS
        by = recipe.refine.get("by", "")
        assert by in {"", "paper", "relational", "self-attention", "average", "conditional", *CONTEXTS}
        for dataset in at.datasets(table):
            given = {"teacher": "a run"} if recipe.teacher else {}
            assert at.training(recipe, dataset, 3, **given).seed == 3


def test_printed_figures_are_percentages_or_correlations():
    for table in tables().values():
        for row in table.rows:
            for dataset, values in row.printed.items():
                assert tuple(values) == table.metrics[dataset]
                assert all(math.isnan(value) or 0 < value < 100 for value in values.values())


def test_a_row_of_another_paper_is_printed_as_there():
    """Attend to Context cites the figures of Intra-Batch: both readings agree."""
    cited = next(row for row in table_named("attend-2").rows if row.name.startswith("Intra-Batch"))
    own = table_named("intra-batch-1").rows[-1]
    for dataset in ("cub", "cars", "sop"):
        shared = cited.printed[dataset].keys() & own.printed[dataset].keys()
        assert {m: cited.printed[dataset][m] for m in shared} == {m: own.printed[dataset][m] for m in shared}
        assert len(shared) == 3


def test_rows_that_tables_share_are_printed_alike():
    """The same network in Tables 1, 3, 4, 6, 7 and 8 of Intra-Batch; the same means in Table S1 as of its learners."""
    same = {"1": "Ours 512", "4": "512", "6": "Ours 512", "7": "backbone only", "8": "Ours"}
    found = {
        row.printed["cub"]["recall@1"]
        for number, name in same.items()
        for row in table_named(f"intra-batch-{number}").rows
        if row.name == name
    }
    assert found == {70.3}
    for row in table_named("divide-s1").made[:2]:
        values = list(row.printed["sop"].values())
        assert sum(values[:8]) / 8 == pytest.approx(values[8], abs=0.06)


def test_a_grid_has_a_row_for_every_pair_and_fewer_when_small():
    sizes = [len(tables(scale)["attend-s-fig1"].rows) for scale in ("full", "small", "quick")]
    assert sizes == [16, 16, 4]
    cell = tables("quick")["attend-s-fig1"].rows[1]
    assert (cell.name, cell.cell) == ("2 x 8", (2, 8))
    assert (cell.recipe.refine["n_neighbors"], cell.recipe.refine["n_blocks"]) == (2, 8)


def test_a_name_that_is_not_there_has_the_closest_named():
    with pytest.raises(
        InputError, match=r"unknown table 'atend-3' of the papers; wanted one of .* \(did you mean attend-3\?\)"
    ):
        table_named("atend-3")


def test_at_small_scale_recipes_change_what_they_say():
    small, full = Scale("small"), Scale()
    large = table_named("attend-2", "small").made[-1].recipe
    assert (full.recipe(large).refine["out_dim"], small.recipe(large).refine["out_dim"]) == (2048, 512)
    ward = next(row for row in table_named("intra-batch-7").made if row.name.startswith("Ward")).recipe
    assert full.refining(full.recipe(ward)) == {"n_clusters": 900} and small.refining(small.recipe(ward)) == {}
    assert small.training(ward, "glyphs", 0).epochs == read_papers()["small"]["set"]["epochs"]


def test_settings_given_win_and_unknown_ones_are_refused():
    recipe = table_named("intra-batch-1").made[0].recipe
    scale = Scale("small", settings={"epochs": 1, "learners": 4, "refiner": {"epochs": 2}})  # learners: of others
    assert scale.training(recipe, "glyphs", 0).epochs == 1
    assert scale.refiner(table_named("attend-1").made[-1].recipe) == {"epochs": 2}
    with pytest.raises(InputError, match=r"unknown setting 'epoch' of any system; .*did you mean epochs"):
        Scale("small", settings={"epoch": 1})
    with pytest.raises(InputError, match="seeds is 0; wanted 1 or more"):
        dataclasses.replace(scale, seeds=0)
    with pytest.raises(InputError, match="unknown dataset 'in_shop' of attend-3; wanted one of cub, cars, sop"):
        Scale(data="in_shop").datasets(table_named("attend-3"))
