"""No file of vectors takes its place that could not be read again."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from entourage.errors import FileError
from entourage.stores import new_folder, read_vectors, whole_file, write_blocks, write_like
from entourage.stores.written import check_written

SUFFIXES = [".npy", ".NPY", ".npz", ".NPZ", ".parquet", ".PARQUET"]
VECTORS = np.eye(5, 4, dtype=np.float32) + 1


def vectors_file(path):
    with path.open("wb") as file:
        if path.suffix.lower() == ".npy":
            np.save(file, VECTORS)
        elif path.suffix.lower() == ".npz":
            np.savez(file, vectors=VECTORS, ids=np.array(list("abcde")), empty=np.zeros((0, 3)), number=np.array(3))
        else:
            pq.write_table(pa.table({"vector": list(VECTORS)}), file)
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_names_in_capitals_are_written_like_others(tmp_path, suffix):
    source = vectors_file(tmp_path / f"v{suffix}")
    write_like(source, tmp_path / f"OUT{suffix}", VECTORS[::-1])
    write_blocks(tmp_path / f"BLOCKS{suffix}", iter([VECTORS[:2], VECTORS[2:]]), 4, np.arange(5))
    for name, wanted in {"OUT": VECTORS[::-1], "BLOCKS": VECTORS}.items():
        unit = wanted / np.linalg.norm(wanted, axis=1)[:, None]
        np.testing.assert_allclose(read_vectors(tmp_path / f"{name}{suffix}").vectors, unit, atol=1e-6)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.99])
def test_a_file_cut_short_replaces_nothing(tmp_path, suffix, share):
    target = vectors_file(tmp_path / f"v{suffix}")
    whole = target.read_bytes()
    with (
        pytest.raises(FileError, match=r"that was written cannot be read again \([\d,]+ bytes: .*nothing was replaced"),
        whole_file(target) as file,
    ):
        file.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(FileError, match="cannot be read again"), new_folder(tmp_path / "run") as filling:
        (filling / f"v{suffix}").write_bytes(whole[: int(share * len(whole))])
    assert target.read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_sound_file_passes(tmp_path, suffix):
    check_written(vectors_file(tmp_path / f"v{suffix}"))


def test_blocks_that_are_fewer_than_promised_replace_nothing(tmp_path):
    with pytest.raises(FileError, match=r"80 bytes|bytes are wanted for \(5, 4\)"):
        write_blocks(tmp_path / "v.npy", iter([VECTORS[:2]]), 4, np.arange(5))
    assert list(tmp_path.iterdir()) == []


def test_other_files_may_be_empty(tmp_path):
    with whole_file(tmp_path / "log.jsonl"):
        pass
    assert (tmp_path / "log.jsonl").read_bytes() == b""
