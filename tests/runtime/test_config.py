"""Settings from files and flags: what is set, what stays, and what is refused with which words."""

import ast
import dataclasses
import inspect
import itertools
import json
import math
from pathlib import Path

import pytest

import entourage
from entourage.errors import FileError, InputError
from entourage.runtime.config import check_known, check_name, from_pairs, from_toml, to_dict
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.settings import EncoderSettings, MetricLossSettings


@pytest.fixture
def toml(tmp_path):
    def write(text: str):
        path = tmp_path / "run.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_file_sets_fields_flags_win_and_the_rest_keep_their_defaults(toml):
    path = toml('loss = "margin"\nepochs = 7\nlearning_rate = 1\n[loss_options]\nlearn_beta = true\n')
    settings = from_toml(BaselineSettings, path, {"epochs": 3, "scheduler": "cosine"})
    assert settings == BaselineSettings(
        loss="margin", epochs=3, learning_rate=1, loss_options={"learn_beta": True}, scheduler="cosine"
    )


def test_without_file_and_flags_there_are_the_defaults():
    assert from_toml(BaselineSettings) == BaselineSettings()


def test_lists_become_tuples_and_go_back(toml):
    settings = from_toml(BaselineSettings, toml('scheduler = "step"\nstep_after = [30, 50]'))
    assert settings.step_after == (30, 50)
    assert to_dict(settings)["step_after"] == [30, 50]


def test_all_settings_survive_json():
    settings = BaselineSettings(loss="margin", loss_options={"beta": 1.1}, step_after=(3,), scheduler="step")
    assert from_toml(BaselineSettings, overrides=json.loads(json.dumps(to_dict(settings)))) == settings


def test_settings_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        BaselineSettings().epochs = 3


def test_every_setting_says_what_it_is():
    """A text under each field: what the command line shows as help."""

    body = [
        node
        for kind in (EncoderSettings, MetricLossSettings)
        for node in ast.parse(inspect.getsource(kind)).body[0].body
    ]
    named = [node.target.id for node in body if isinstance(node, ast.AnnAssign)]
    described = [
        node.target.id
        for node, after in itertools.pairwise(body)
        if isinstance(node, ast.AnnAssign) and isinstance(after, ast.Expr)
    ]
    assert described == named == [field.name for field in dataclasses.fields(BaselineSettings)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("epoch = 3", r"unknown setting 'epoch' in .*; wanted one of amp, augment, .*\(did you mean epochs\?\)"),
        ('epochs = "3"', r"epochs is '3'; wanted a whole number \(set in .*run.toml"),
        ("epochs = 3.0", "epochs is 3.0; wanted a whole number"),
        ("epochs = true", "epochs is True; wanted a whole number"),
        ("learning_rate = true", "learning_rate is True; wanted a number"),
        ('clip = "no"', "clip is 'no'; wanted a number, or nothing"),
        ("augment = 1", "augment is 1; wanted true or false"),
        ("loss = 3", "loss is 3; wanted text"),
        ('loss_options = "x"', "loss_options is 'x'; wanted a table"),
        ("step_after = [1.5]", r"step_after is \(1.5,\); wanted a list, each a whole number"),
        ("step_after = 3", "step_after is 3; wanted a list"),
    ],
)
def test_unknown_keys_and_wrong_types_are_refused(toml, text, said):
    with pytest.raises(InputError, match=said):
        from_toml(BaselineSettings, toml(text))


def test_an_unknown_flag_is_refused_like_an_unknown_key():
    with pytest.raises(InputError, match="unknown setting 'epoch'; wanted one of"):
        from_toml(BaselineSettings, overrides={"epoch": 3})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"dim": 0}, "dim is 0; wanted 1 or more"),
        ({"batch_classes": 1}, "batch_classes is 1; wanted 2 or more"),
        ({"batch_per_class": 1}, "batch_per_class is 1; wanted 2 or more"),
        ({"patience": 0}, "patience is 0; wanted 1"),
        ({"evaluate_every": 0}, "evaluate_every is 0; wanted 1"),
        ({"image_size": 0}, "image_size is 0; wanted 1"),
        ({"workers": 0}, "workers is 0; wanted 1"),
        ({"epochs": -1}, "epochs is -1; wanted 0 or more"),
        ({"seed": -1}, "seed is -1; wanted 0 or more"),
        ({"learning_rate": -0.1}, "learning_rate is -0.1; wanted 0"),
        ({"learning_rate": math.nan}, "learning_rate is nan; wanted a number"),
        ({"clip": 0}, "clip is 0; wanted more than 0"),
        ({"validation_share": 1.0}, "validation_share is 1.0; wanted 0 or more and less than 1"),
    ],
)
def test_values_out_of_range_are_refused(values, said):
    with pytest.raises(InputError, match=said):
        BaselineSettings(**values)


def test_a_file_that_is_missing_or_no_toml_is_refused(tmp_path, toml):
    with pytest.raises(FileError, match=r"nothing.toml cannot be read \(No such file"):
        from_toml(BaselineSettings, tmp_path / "nothing.toml")
    with pytest.raises(FileError, match=r"run.toml cannot be read .*wanted a TOML file"):
        from_toml(BaselineSettings, toml("epochs: 3"))


def test_pairs_are_read_as_toml_bare_words_as_text():
    pairs = [
        "epochs=3",
        "loss = margin",
        'encoder="a=b"',
        "step_after=[1, 2]",
        "augment=false",
        "clip=",
        "device=cuda:1",
    ]
    assert from_pairs(pairs) == {
        "epochs": 3,
        "loss": "margin",
        "encoder": "a=b",
        "step_after": [1, 2],
        "augment": False,
        "clip": "",
        "device": "cuda:1",
    }


def test_a_dot_reaches_into_a_table_whose_other_entries_stay(toml):
    given = from_pairs(["loss_options.margin=0.1", "loss_options.nu=1"])
    assert given == {"loss_options": {"margin": 0.1, "nu": 1}}
    path = toml('loss = "margin"\n[loss_options]\nmargin = 0.3\nbeta = 1.1\n')
    assert from_toml(BaselineSettings, path, given).loss_options == {"margin": 0.1, "beta": 1.1, "nu": 1}


@pytest.mark.parametrize("pair", ["epochs", "=3", " = 3"])
def test_a_pair_without_name_or_value_is_refused(pair):
    with pytest.raises(InputError, match="wanted name=value, such as epochs=3"):
        from_pairs([pair])


@pytest.mark.parametrize(
    ("name", "known", "otherwise", "said"),
    [
        ("epoch", ["dim", "epochs"], "", "the setting is 'epoch'; wanted one of dim, epochs (did you mean epochs?)"),
        ("zzz", ["dim", "epochs"], "", "the setting is 'zzz'; wanted one of dim, epochs"),
        ("x", [], "", "the setting is 'x'; wanted none, as there are none to choose from: leave it out"),
        ("x", ["dim"], "a file that exists", "the setting is 'x'; wanted one of dim or a file that exists"),
        (None, ["dim"], "", "the setting is None; wanted one of dim"),
    ],
)
def test_an_unknown_name_is_refused_with_the_known_ones_and_the_nearest(name, known, otherwise, said):
    with pytest.raises(InputError) as refused:
        check_known(name, known, "the setting", otherwise=otherwise)
    assert str(refused.value) == said
    check_known("dim", ["dim"], "the setting")


@pytest.mark.parametrize(
    ("known", "of", "said"),
    [
        (
            ["drift", "query"],
            "of kept",
            "unknown figure 'qurey' of kept; wanted one of drift, query (did you mean query?)",
        ),
        (["drift"], "", "unknown figure 'qurey'; wanted one of drift"),
        ([], "of kept", "unknown figure 'qurey' of kept; wanted none, as there are none to choose from: leave it out"),
    ],
)
def test_the_name_of_something_that_is_not_there_is_refused_in_plain_words(known, of, said):
    with pytest.raises(InputError) as refused:
        check_name("qurey", known, "figure", of)
    assert str(refused.value) == said
    check_name("query", ["query"], "figure", of)


def subjects_of_choices() -> dict[str, str]:
    """What every call of check_known names as its subject, by where it stands."""
    package = Path(entourage.__file__).parent
    found = {}
    for path in package.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "check_known":
                found[f"{path.relative_to(package)}:{call.lineno}"] = ast.unparse(call.args[2]).strip("f'\"")
    return found


def test_what_a_choice_is_called_is_the_subject_of_a_sentence():
    """Not "an option of cub is 'boxes'", nor "the figure of kept is 'query'": that is what check_name is for."""
    subjects = subjects_of_choices()
    assert len(subjects) > 10
    assert {place: what for place, what in subjects.items() if what.startswith(("a ", "an ")) or " of " in what} == {}
