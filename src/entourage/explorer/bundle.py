"""The page in one file: its modules as one script, its style and its data inside, and a policy that allows just those.

Modules of the page import each other by `import { a, b } from "./other.js";` and export by `export` before a
declaration; here each becomes a function that returns what it exports, in an order in which all are known. Nothing of
it is needed to use the page from a server.
"""

import base64
import hashlib
import json
import re
from typing import Any

from entourage.explorer.pages import FILES

__all__ = ["as_script", "one_file"]

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


def as_script() -> str:
    """All modules as one script, in the order in which they need each other."""
    sources = {name: content.decode() for name, (content, _) in FILES.items() if name.endswith(".js")}
    order: list[str] = []

    def visit(name: str) -> None:
        if name not in order:
            for _, other in _IMPORT.findall(sources[name]):
                visit(other)
            order.append(name)

    visit("main.js")
    return "const modules = {};\n" + "\n".join(_wrapped(name, sources[name]) for name in order)


def _wrapped(name: str, source: str) -> str:
    exported = [found for _, found in _EXPORT.findall(source)]
    body = _EXPORT.sub(r"\1", _IMPORT.sub(r'const {\1} = modules["\2"];', source))
    return f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {", ".join(exported)} }};\n}})();'


def one_file(data: dict[str, Any]) -> str:
    """The page with its data, as HTML that opens from disk.

    Parameters
    ----------
    data : dict
        As JSON; what embedded.js reads.

    Returns
    -------
    str
    """
    script, style = as_script(), FILES["style.css"][0].decode()
    icon = base64.b64encode(FILES["icon.svg"][0]).decode()
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    page = FILES["index.html"][0].decode()
    page = page.replace(
        '<meta charset="utf-8">',
        f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{policy}">',
    )
    page = page.replace(
        '<link rel="icon" href="page/icon.svg">', f'<link rel="icon" href="data:image/svg+xml;base64,{icon}">'
    )
    page = page.replace('<link rel="stylesheet" href="page/style.css">', f"<style>{style}</style>")
    page = page.replace('<script type="module" src="page/main.js"></script>\n', "")
    inside = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")  # no tag ends in it
    ending = (
        f'<script type="application/json" id="embedded">{inside}</script>\n<script type="module">{script}</script>\n'
    )
    return page.replace("</body>", f"{ending}</body>")


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
