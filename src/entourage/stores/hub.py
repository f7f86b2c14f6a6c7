"""Folders of models and runs on the Hugging Face hub: fetched by name, pushed as they are written.

Nothing that could run code is fetched or pushed: no pickle, no script. The hub is asked only where a name is no folder.
"""

import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from entourage.errors import FileError, InputError
from entourage.runtime.extras import require
from entourage.stores.paths import StrPath

__all__ = ["fetched", "pushed"]

_ON_THE_HUB = re.compile(r"\w[\w.-]*/\w[\w.-]*")  # owner/name
_NEVER = ["*.pkl", "*.pickle", "*.pt", "*.pth", "*.bin", "*.ckpt", "*.joblib", "*.py", "*.ipynb", "*.sh"]


def fetched(
    name: StrPath,
    *,
    revision: str | None = None,
    token: str | bool | None = None,
    cache_dir: StrPath | None = None,
    local_files_only: bool = False,
) -> Path:
    """Find the folder of a model or a run: by its path, or by its name on the hub, from where it is downloaded.

    Parameters
    ----------
    name : str or path-like
        A folder, or owner/name of a repository.
    revision : str, optional
        A branch, a tag or a commit.
    token : str or bool, optional
        For private repositories.
    cache_dir : path, optional
        Where downloads are kept, if not where the library keeps them.
    local_files_only : bool
        Whether to take only what has been downloaded before.

    Returns
    -------
    Path
        The folder.
    """
    if Path(name).is_dir():
        return Path(name)
    if not _ON_THE_HUB.fullmatch(str(name)):
        raise FileError(f"there is no folder {name}; wanted one, or a repository of the Hugging Face hub as owner/name")
    require("huggingface_hub", f"there is no folder {name}, and fetching it from the Hugging Face hub")
    from huggingface_hub import snapshot_download

    options: dict[str, Any] = {"revision": revision, "token": token, "cache_dir": cache_dir}
    try:
        return Path(snapshot_download(str(name), local_files_only=local_files_only, ignore_patterns=_NEVER, **options))
    except Exception as error:  # whatever the libraries that carry the request raise
        raise FileError(
            f"there is no folder {name}, and the Hugging Face hub or its local cache did not give it "
            f"({_reason(error)}); check the name and the connection, or give a folder"
        ) from error


def pushed(
    save: Callable[[Path], object],
    repo_id: str,
    *,
    private: bool | None = None,
    token: str | None = None,
    revision: str | None = None,
    commit_message: str | None = None,
) -> str:
    """Write a folder and send it to a repository of the hub, which is created if there is none.

    Parameters
    ----------
    save : callable
        save(folder) writes the new folder.
    repo_id : str
        owner/name.
    private : bool, optional
        Whether only its owner sees a repository that is created.
    token : str, optional
        Who sends it, if not whoever has logged in.
    revision : str, optional
        The branch.
    commit_message : str, optional

    Returns
    -------
    str
        The address of the commit.
    """
    if not _ON_THE_HUB.fullmatch(str(repo_id)):
        raise InputError(f"the repository is {repo_id!r}; wanted owner/name, as the Hugging Face hub names it")
    require("huggingface_hub", "pushing to the Hugging Face hub")
    from huggingface_hub import HfApi

    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "pushed"
        save(folder)
        api = HfApi(token=token)
        message = commit_message or "Written by entourage"
        try:
            api.create_repo(repo_id, private=private, exist_ok=True)
            commit = api.upload_folder(
                repo_id=repo_id, folder_path=folder, revision=revision, commit_message=message, ignore_patterns=_NEVER
            )
        except Exception as error:  # of any library that carries the request
            raise FileError(
                f"the Hugging Face hub did not take {repo_id} ({_reason(error)}); check the name, the connection and "
                "that you have logged in"
            ) from error
    return str(commit.commit_url)


def _reason(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
