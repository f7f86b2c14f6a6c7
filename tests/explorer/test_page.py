"""The files of the page: small modules, nothing parsed as markup, nothing from elsewhere, and all of them in one."""

import json
import re
from itertools import combinations

import numpy as np
import pytest
from tests.explorer.conftest import HOSTILE

from entourage.explorer.bundle import as_script, one_file
from entourage.explorer.pages import FILES

MODULES = sorted(name for name in FILES if name.endswith(".js"))


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_short_and_never_makes_markup_of_text(name):
    source = FILES[name][0].decode()
    assert source.count("\n") <= 400
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc", source)
    assert source.startswith("// ")  # what it is for


@pytest.mark.parametrize("name", sorted(FILES))
def test_nothing_is_asked_of_another_place(name):
    found = re.findall(r"https?://[^\s\"']+", FILES[name][0].decode())
    assert set(found) <= {"http://www.w3.org/2000/svg"}


def test_every_module_is_used_and_every_import_is_exported():
    sources = {name: FILES[name][0].decode() for name in MODULES}
    exported = {
        name: set(re.findall(r"^export (?:async )?(?:function|class|const) (\w+)", source, re.M))
        for name, source in sources.items()
    }
    used = {"main.js"}
    for source in sources.values():
        for names, other in re.findall(r'^import \{([^}]*)\} from "\./([\w.]+)";$', source, re.M):
            used.add(other)
            assert {name.strip() for name in names.split(",")} - {""} <= exported[other]
        assert len(re.findall(r"^import ", source, re.M)) == len(
            re.findall(r'^import \{[^}]*\} from "\./[\w.]+";$', source, re.M)
        )
    assert used == set(MODULES)


def test_in_one_file_nothing_ends_the_data_and_nothing_is_loaded():
    page = one_file({"labels": [HOSTILE, "</script><script>alert(1)</script>"]})
    inside = page.partition('id="embedded">')[2].partition("</script>")[0]
    assert json.loads(inside)["labels"] == [HOSTILE, "</script><script>alert(1)</script>"]
    assert page.count("<script") == 2 and 'src="page/' not in page and 'href="page/' not in page
    assert "import {" not in as_script() and "export " not in re.sub(r"//.*", "", as_script())


# As people see linear RGB: with all cones, or without one kind of them (Machado et al. 2009, severity 1).
VISIONS = {
    "all": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
LMS = np.array([[0.41222, 0.53633, 0.05145], [0.2119, 0.6807, 0.1074], [0.0883, 0.28172, 0.62998]])
OKLAB = np.array([[0.21045, 0.79362, -0.00407], [1.978, -2.42859, 0.45059], [0.0259, 0.78277, -0.80868]])


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize(
    ("name", "apart"), [("LIGHT", 0.09), ("DARK", 0.09), ("SIGNED_LIGHT", 0.19), ("SIGNED_DARK", 0.19)]
)
def test_colours_are_told_apart_with_any_kind_of_colour_vision(name, apart, vision):
    source = FILES["colours.js"][0].decode()
    found = re.findall(r"#([0-9a-f]{6})", re.search(rf"const {name} = \[([^\]]*)\]", source)[1])
    rgb = np.array([[int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4)] for colour in found])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.cbrt(np.clip(linear @ np.array(VISIONS[vision]).T, 0, 1) @ LMS.T) @ OKLAB.T
    assert min(np.linalg.norm(one - other) for one, other in combinations(seen, 2)) >= apart
