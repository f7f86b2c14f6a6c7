"""Folders to write into, and what is in them."""


def names(folder) -> list[str]:
    """All that lies in a folder, hidden or not."""
    return sorted(path.name for path in folder.iterdir())


def model_folder(path):
    """A folder that looks like a model of ours, and may be replaced."""
    path.mkdir()
    (path / "config.json").write_text('{"entourage": "0.1.0"}')
    return path
