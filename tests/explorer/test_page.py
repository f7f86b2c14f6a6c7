"""The files of the page: small modules, nothing parsed as markup, nothing from elsewhere, and all of them in one."""

import json
import re

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
