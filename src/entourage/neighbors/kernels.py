"""The compiled part of the search: which similarities of a tile are worth keeping, and the order of those kept.

A candidate is one 64-bit key: the bits of its similarity, turned so that the higher similarity is the smaller number,
above the position of the item. Keys in ascending order are neighbours as wanted: nearest first, ties by position.
Each row collects in C > k places the candidates that pass its bar, just below the k-th best so far; when the places
are full, the best stay and the bar rises. All others cost one comparison, many at a time.

Fast products round a similarity differently from one place of a tile to the next. So candidates that lie within that
rounding of each other are compared once more, in double precision, and the order does not depend on tiles.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.runtime.jit import compiled, inlined
from entourage.values import FloatArray, IntArray

__all__ = ["BELOW_ANY", "Candidates", "compile_ahead", "precise_product", "room", "rounding_margin"]

BELOW_ANY = -2.0  # a similarity lower than that of any two unit vectors: of an item that must not be found
_CHUNK, _FINE = 128, 32  # similarities compared at once
_SIGN, _POSITION = 0x7FFFFFFF, 0xFFFFFFFF
_NO_KEY = np.iinfo(np.int64).max
_ROUNDING = 2.0**-25  # half of the last bit of a sum in [0.5, 1], which each addition may cost


class Candidates:
    """What n rows have kept so far of the items they met, for the k best of each.

    keys (n, C) int64, of which counts (n,) are in use; bars (n,) float32, the similarity a newcomer has to exceed.
    margin: two similarities as close as this may be in the wrong order.
    """

    def __init__(self, n: int, k: int, margin: float) -> None:
        self.k, self.margin = k, np.float32(margin)
        self.keys = np.empty((n, room(k)), np.int64)
        self.counts = np.zeros(n, np.int64)
        self.bars = np.full(n, -np.inf, np.float32)

    def expect(self, tile: NDArray[np.float32], rows: slice, rank: int) -> None:
        """Start some rows with a bar: the similarity of that rank among those to a sample of the items, tile (r, m)."""
        tile.partition(tile.shape[1] - rank, axis=1)
        self.bars[rows] = tile[:, -rank] - self.margin

    def meet(self, tile: NDArray[np.float32], first_item: int, hidden: IntArray) -> None:
        """Similarities tile (n, c) of all rows to the items from first_item on; hidden (n,) is the item each row must
        not find, or -1: it comes last, as BELOW_ANY."""
        _meet(tile, first_item, hidden, self.k, self.margin, self.keys, self.counts, self.bars)

    def meet_each_other(self, tile: NDArray[np.float32], first_row: int, first_item: int, hidden: IntArray) -> None:
        """Offer similarities tile (r, c) where the rows are the items: they count for rows and columns alike."""
        _meet_each_other(tile, first_row, first_item, hidden, self.k, self.margin, self.keys, self.counts, self.bars)

    def settle(self, rows: slice, vectors: FloatArray, items: FloatArray) -> None:
        """Sort some rows that have met everyone; vectors (r, d) are theirs, items (m, d) those they have met."""
        keys = self.keys[rows]
        keys[np.arange(keys.shape[1]) >= self.counts[rows, None]] = _NO_KEY
        keys.sort(axis=1)
        if self.margin:
            _compare_again(keys, self.counts[rows], self.k, self.margin, _read_only(vectors), _read_only(items))

    def unsettled(self) -> IntArray:
        """Rows that may have lost someone: by too high a bar at the start, or by too many as near as their k-th."""
        last = self.best(slice(None), self.k - 1)[1][:, 0]
        return np.flatnonzero((self.counts < self.k) | (self.bars > last - self.margin))

    def best(self, rows: slice | IntArray, first: int = 0) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Items int64 and similarities float32, each (r, k), of settled rows; without the nearest `first`."""
        keys = self.keys[rows, first : self.k]
        bits = ~(keys >> 32)
        bits = np.where(bits < 0, bits ^ _SIGN, bits).astype(np.int32)
        return keys & _POSITION, bits.view(np.float32)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The same values; numba would compile once for arrays that may be written to and once for those that may not."""
    view = array.view()
    view.flags.writeable = False
    return view


def rounding_margin(d: int) -> float:
    """The most by which rounding can change the difference of two similarities of unit vectors (d,).

    Each of d additions in single precision may be off by half of the last bit, in either of the two sums. Sums rarely
    come near that bound, but some do: where one value of a vector outweighs all others, every addition rounds the
    same way.
    """
    return 2 * d * _ROUNDING


def room(k: int) -> int:
    """Return the number of places for the candidates of one row: the more, the more rarely the best are picked out."""
    return k + max(k // 2, 24)


def compile_ahead() -> None:
    """Compile, or load from disk, what the search needs, before threads ask for it all at once."""
    if getattr(_meet_each_other, "signatures", True):  # compiled before, or not at all: NUMBA_DISABLE_JIT
        return
    one, nobody = np.ones((1, 1), np.float32), np.full(1, -1)
    candidates = Candidates(1, 1, 1e-6)
    candidates.meet(one, 0, nobody)
    candidates.meet_each_other(one, 0, 0, nobody)
    candidates.settle(slice(0, 1), one, one)


@inlined
def _key(similarity: float, item: int) -> int:
    bits = np.int64(np.float32(similarity + np.float32(0)).view(np.int32))  # -0.0 + 0.0 is 0.0, as the two tie
    if bits < 0:
        bits ^= _SIGN  # among negative numbers the larger one has the smaller bits
    return (~bits << 32) | item


@inlined
def _similarity(key: int) -> float:
    bits = ~(key >> 32)
    if bits < 0:
        bits ^= _SIGN
    return np.int32(bits).view(np.float32)


@inlined
def _select(keys: NDArray[np.int64], k: int) -> None:
    """Reorder keys (n,) so that the k smallest come first, the largest of them at k - 1."""
    low, high = 0, len(keys) - 1
    while low < high:
        a, b, c = keys[low], keys[(low + high) >> 1], keys[high]
        pivot = max(min(a, b), min(max(a, b), c))
        left, right = low, high
        while left <= right:
            while keys[left] < pivot:
                left += 1
            while keys[right] > pivot:
                right -= 1
            if left <= right:
                keys[left], keys[right] = keys[right], keys[left]
                left += 1
                right -= 1
        if k - 1 <= right:
            high = right
        elif k - 1 >= left:
            low = left
        else:
            return


@inlined
def _pick_best(keys: NDArray[np.int64], k: int, margin: float) -> tuple[int, float]:
    """Of full keys (C,) move the k best to the front and, after them, those within the margin of the k-th.

    Returns how many these are and the bar for newcomers. Where too many are so close, some are dropped, and the bar is
    higher than the k-th best less the margin.
    """
    _select(keys, k)
    bar = _similarity(keys[k - 1]) - margin
    kept = k
    for j in range(k, len(keys)):
        if _similarity(keys[j]) > bar:
            keys[kept], keys[j] = keys[j], keys[kept]
            kept += 1
    most = (k + len(keys)) // 2
    if kept > most:
        _select(keys[:kept], most)
        return most, _similarity(keys[most - 1])
    return kept, bar


@inlined
def _offer(
    similarity: float,
    item: int,
    row: int,
    k: int,
    margin: float,
    keys: NDArray[np.int64],
    counts: NDArray[np.int64],
    bars: NDArray[np.float32],
) -> float:
    """Place an item that has passed the bar among the row's candidates; return the bar."""
    keys[row, counts[row]] = _key(similarity, item)
    counts[row] += 1
    if counts[row] == keys.shape[1]:
        counts[row], bars[row] = _pick_best(keys[row], k, margin)
    return bars[row]


@compiled
def _meet(
    tile: NDArray[np.float32],
    first_item: int,
    hidden: IntArray,
    k: int,
    margin: float,
    keys: NDArray[np.int64],
    counts: NDArray[np.int64],
    bars: NDArray[np.float32],
) -> None:
    n, m = tile.shape
    for row in range(n):
        line, bar = tile[row], bars[row]
        if 0 <= hidden[row] - first_item < m:
            line[hidden[row] - first_item] = BELOW_ANY
        for start in range(0, m, _CHUNK):
            if not _any_above(line[start : start + _CHUNK], bar):
                continue
            for near in range(start, min(start + _CHUNK, m), _FINE):
                if not _any_above(line[near : near + _FINE], bar):
                    continue
                for j in range(near, min(near + _FINE, m)):
                    if line[j] > bar:
                        bar = _offer(line[j], first_item + j, row, k, margin, keys, counts, bars)


@compiled
def _meet_each_other(
    tile: NDArray[np.float32],
    first_row: int,
    first_item: int,
    hidden: IntArray,
    k: int,
    margin: float,
    keys: NDArray[np.int64],
    counts: NDArray[np.int64],
    bars: NDArray[np.float32],
) -> None:
    n, m = tile.shape
    below = bars[first_item : first_item + m].copy()  # the bars of the columns
    for i in range(n):
        row, line, begin = first_row + i, tile[i], 0
        if first_row == first_item:  # a tile on the diagonal: its upper triangle says everything
            own = np.float32(BELOW_ANY) if hidden[row] == row else line[i]
            if own > bars[row]:
                _offer(own, row, row, k, margin, keys, counts, bars)
            begin = i + 1
        bar = bars[row]
        for start in range(begin, m, _CHUNK):
            if not _any_above_either(line[start : start + _CHUNK], bar, below[start : start + _CHUNK]):
                continue
            for near in range(start, min(start + _CHUNK, m), _FINE):
                if not _any_above_either(line[near : near + _FINE], bar, below[near : near + _FINE]):
                    continue
                for j in range(near, min(near + _FINE, m)):
                    if line[j] > bar:
                        bar = _offer(line[j], first_item + j, row, k, margin, keys, counts, bars)
                    if line[j] > below[j]:
                        below[j] = _offer(line[j], row, first_item + j, k, margin, keys, counts, bars)


@inlined
def _any_above(line: NDArray[np.float32], bar: float) -> bool:
    found = False
    for j in range(len(line)):
        found |= line[j] > bar
    return found


@inlined
def _any_above_either(line: NDArray[np.float32], bar: float, bars: NDArray[np.float32]) -> bool:
    found = False
    for j in range(len(line)):
        found |= line[j] > min(bar, bars[j])
    return found


@compiled
def _compare_again(
    keys: NDArray[np.int64], counts: NDArray[np.int64], k: int, margin: float, vectors: FloatArray, items: FloatArray
) -> None:
    """Order sorted keys (n, C) anew wherever neighbours in the order are within the margin of each other."""
    for row in range(len(keys)):
        start = 0
        while start < min(k, counts[row]):
            stop = start + 1
            while stop < counts[row] and _similarity(keys[row, stop - 1]) - _similarity(keys[row, stop]) <= margin:
                stop += 1
            if stop > start + 1:
                _sort_precisely(keys[row, start:stop], vectors[row], items)
            start = stop
        for j in range(1, min(k, counts[row])):
            if keys[row, j] < keys[row, j - 1]:  # vectors a little longer than 1 lose more than the margin
                _sort_precisely(keys[row, : counts[row]], vectors[row], items)
                break


@inlined
def _sort_precisely(keys: NDArray[np.int64], vector: FloatArray, items: FloatArray) -> None:
    """Keys (n,) of a vector (d,) to some items, by similarities in double precision; who is hidden stays last."""
    for j in range(len(keys)):
        item = keys[j] & _POSITION
        if _similarity(keys[j]) > BELOW_ANY:
            keys[j] = _key(precise_product(vector, items[item]), item)
    keys.sort()


@inlined(fastmath={"reassoc", "contract"})
def precise_product(a: FloatArray, b: FloatArray) -> float:
    """The similarity of two vectors (d,), summed in double precision."""
    total = 0.0
    for j in range(len(a)):
        total += np.float64(a[j]) * np.float64(b[j])
    return np.float32(total)
