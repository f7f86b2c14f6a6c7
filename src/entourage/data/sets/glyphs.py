"""Characters of many scripts, drawn as if by hand: a dataset that needs no download.

    a character and the faces that hold it -> signed distance fields -> warped, thickened, softened -> pixels

The training and the test split use different scripts, so every test class is unseen and of a foreign kind.
The fonts are those matplotlib ships. The table is frozen; tests/data/test_glyphs.py holds the rule that
chose it: a character that looks like an earlier one of either split (Greek Alpha, Cyrillic A) is left out.
"""

from collections.abc import Collection
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from entourage.data.arrays import ImageArray
from entourage.data.layout import Archives, Count
from entourage.errors import InputError
from entourage.runtime.config import check_name
from entourage.runtime.progress import Progress
from entourage.runtime.randomness import generator

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["SCRIPTS", "load", "scripts"]

SCRIPTS = {
    "train": {
        "Latin": (
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabdefgkmnpqrtuyÆÞßæðþŊƄƆƎƐƔƕƜƢƣƦƧƩƪƱƷƸǁǂǶǷȜȢ"
            "ɁɂɄɐɑɜɞɤɥɮɯɷɸɹʃʅʇʉʌʍʎʔʕʖʗʞʬʭᴑᴒᴔᴖᴗᴝᴞᵷẞỺⱵⱷꜢꜤꜦꜧꜨꜩꜴꜶꜸꜹꜼꜽꝆꝇꝎꞀꞂꞍꟻꟼꟽꟿ"
        ),
        "Greek": "ͲͶͼͽΓΞΦΨΩβζθικλνξςτφχωϏϗϘϙϚϞϟϠϡϺϻ",
        "Cyrillic": "ЂЉЊЋЏБДЖЛЩЪЫЮЯфцъђћѢѣѤѦѨѪѬѮѰѱѴѸѹѾҍҠҨҺҼӋԀԂԃԄԅԆԉԎԏԔԖԗԘԙꙌꙔꙖꙗꙢꙤꙦꙩꙪꙮꚔꚕ",
        "Coptic": "ϢϦϧϨϪϮ",
    },
    "test": {
        "Georgian": "ႠႡႢႣႤႥႧႨႩႪႫႮႯႰႱႲႵႶႸႹႻႼႽႿჁჂჃჄჅაბგდეზიკლნოპჟრსტუფქღშცჭჯჰჱჲჳჴჵჶჸჹჺ",
        "Armenian": "ԱԲԳԴԵԶԷԸԹԺԻԽԾԿՀՁՃՄՆՇՉՊՋՌՎՐՒՔՖդէթխծճմնչպջվփքֆ",
        "Hebrew": "אבגהזטיךלםמנעףפץצקרשת",
        "Arabic": "ءبةتثجخدذرزسشصطعغفقكلمنهوىي",
        "Canadian": "ᐁᐃᐅᐊᐳᐸᑧᑨᑩᑪᑲᒉᒐᒧᓀᓂᓄᓇᓓᓕᓗᓚᓭᓯᓱᓴᔐᔑᔓᔕᔦᔨᔪᔭᕂᕆᕈᕋᕓᕕᕗᕙᕞᕠᕤᕦᕿᖁᖃᖏᖑᖓᖠᖢᖤ",
        "Tifinagh": "ⴰⴳⴵⴶⴻⴼⴽⴾⴿⵁⵂⵃⵄⵅⵆⵇⵈⵋⵌⵎⵐⵒⵓⵖⵗⵘⵚⵛⵜⵞⵟⵢⵣⵤⵥ",
        "Lao": "ກຂຄງຈຊຍດຕຖທນບປຜຝພມຣລວສຫຮຯະາຽເແໂໃໄ",
        "NKo": "ߌߍߎߐߑߒߓߔߖߗߘߙߚߛߝߞߟߢߣߤ",
    },
}

TITLE = "characters of many scripts, drawn as by hand"
EXPECTED = {split: Count(20 * classes, classes) for split, classes in (("train", 236), ("test", 298))}
ARCHIVES: Archives = ()

_FACES = (
    "DejaVuSans",
    "DejaVuSans-Bold",
    "DejaVuSans-Oblique",
    "DejaVuSans-BoldOblique",
    "DejaVuSansMono",
    "DejaVuSansMono-Bold",
    "DejaVuSansMono-Oblique",
    "DejaVuSerif",
    "DejaVuSerif-Bold",
    "DejaVuSerif-Italic",
    "DejaVuSerif-BoldItalic",
    "STIXGeneral",
    "STIXGeneralBol",
    "STIXGeneralItalic",
    "cmr10",
    "cmss10",
    "cmtt10",
)
_POINTS = 64  # font size of the master drawing
_FIELD = 64  # side of a distance field, in its pixels
_BOX = 48  # longer side of the glyph inside the field

# The unit of length below is half the box a glyph is fitted to: it spans -1..1 along its longer side.
_VIEW = 1.45  # half side of the picture
_TURN = np.radians(12)
_SHEAR = 0.16
_SCALE = 0.11
_SHIFT = 0.09
_WARP = 0.095
_KNOTS = 5  # the elastic warp is drawn on a grid of this side
_STROKE = (0.07, 0.16)  # half width of the pen
_THINNEST = 0.75  # no stroke loses more than a quarter of its width, so that hairlines survive
_EDGE = (0.08, 0.2)  # width of the ramp from ink to paper
_NOISE = 12.0  # grey levels


def load(
    split: str,
    *,
    per_class: int = 20,
    size: int = 32,
    seed: int = 0,
    max_classes: int | None = None,
    progress: Progress | None = None,
) -> ImageArray:
    """Draw a split, white ink on black, ordered by class.

    Parameters
    ----------
    split : str
        train or test.
    per_class : int
        Pictures of each character.
    size : int
        Height and width of a picture, in pixels.
    seed : int
        Decides how each character is distorted.
    max_classes : int, optional
        Take this many classes, evenly over the scripts; their pictures are the same as without.
    progress : Progress, optional
        Called as progress(title, done, total) after each class.

    Returns
    -------
    ImageArray
        pixels (classes * per_class, size, size); labels read "Georgian ა", ids "Georgian ა 0".

    Examples
    --------
    >>> load("test", per_class=2, max_classes=3).pixels.shape
    (6, 32, 32)
    """
    classes = [(script, char) for script, chars in scripts(split).items() for char in chars]
    _check_at_least(0, seed=seed)
    _check_at_least(1, per_class=per_class, size=size)
    if max_classes is not None:
        _check_at_least(1, max_classes=max_classes)
        classes = _spread(classes, max_classes)
    pixels = np.empty((len(classes), per_class, size, size), np.uint8)
    for done, (_, char) in enumerate(classes):
        pixels[done] = _draw(char, per_class, size, generator(seed, ord(char)))
        if progress is not None:
            progress("drawing glyphs", done + 1, len(classes))
    names = [f"{script} {char}" for script, char in classes]
    ids = [f"{name} {number}" for name in names for number in range(per_class)]  # no two splits share one
    return ImageArray(pixels.reshape(-1, size, size), np.repeat(names, per_class), np.array(ids))


def scripts(split: str) -> dict[str, str]:
    """The characters of a split, each of which is a class.

    Parameters
    ----------
    split : str
        train or test.

    Returns
    -------
    dict of str to str
        The characters of each script, by its name.
    """
    check_name(split, SCRIPTS, "split", "of glyphs")
    return dict(SCRIPTS[split])


def _check_at_least(least: int, **settings: int) -> None:
    for name, value in settings.items():
        if value < least:
            raise InputError(f"{name} is {value}; wanted {least} or more")


def _spread(items: list[Any], count: int) -> list[Any]:
    count = min(count, len(items))
    return [items[i * len(items) // count] for i in range(count)]


def _draw(char: str, count: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Distorted pictures of one character, (count, size, size) uint8, its faces taking turns."""
    from scipy.ndimage import map_coordinates

    fonts = _fonts_with(char)
    fields, widths = _distance_fields(char, [fonts[i] for i in rng.permutation(len(fonts))[:count]])
    face = np.arange(count) % len(fields)
    y, x = (_places(count, size, rng) * (_BOX / 2) + (_FIELD - 1) / 2).swapaxes(0, 1)
    where = np.stack([np.broadcast_to(face[:, None, None], y.shape), y, x])  # (3, count, size, size)
    depth = map_coordinates(fields, where, order=1, mode="nearest")
    pen = rng.uniform(*_STROKE, count)
    thicker = np.maximum(pen, _THINNEST * widths[face]) - widths[face]
    edge = rng.uniform(*_EDGE, count)
    ink = np.clip((depth + thicker[:, None, None]) / edge[:, None, None] + 0.5, 0, 1)
    noise = rng.normal(0, _NOISE, ink.shape)
    return np.clip(255 * ink + noise, 0, 255).astype(np.uint8)


def _places(count: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Where each pixel looks on the undistorted glyph, (count, 2, size, size) as y and x."""
    line = _VIEW * ((2 * np.arange(size) + 1) / size - 1)
    straight = np.stack(np.meshgrid(line, line, indexing="ij"))
    moved = straight - rng.uniform(-_SHIFT, _SHIFT, (count, 2, 1, 1))
    turned = np.einsum("nij,njyx->niyx", _affine(count, rng), moved)
    return turned + _smooth(rng.normal(0, _WARP, (count, 2, _KNOTS, _KNOTS)), size)


def _affine(count: int, rng: np.random.Generator) -> np.ndarray:
    """Small rotations, shears and scalings, (count, 2, 2)."""
    turn = rng.uniform(-_TURN, _TURN, count)
    shear = rng.uniform(-_SHEAR, _SHEAR, count)
    scale = np.exp(rng.uniform(-_SCALE, _SCALE, (count, 2, 1)))
    cos, sin = np.cos(turn), np.sin(turn)
    rotation = np.stack([cos, -sin, sin, cos], axis=-1).reshape(count, 2, 2)
    slant = np.stack([np.ones(count), np.zeros(count), shear, np.ones(count)], axis=-1).reshape(count, 2, 2)
    return scale * (rotation @ slant)


def _smooth(knots: np.ndarray, size: int) -> np.ndarray:
    """Values on a coarse grid (..., k, k) spread to every pixel (..., size, size) by Gaussian bumps."""
    count = knots.shape[-1]
    pixel = (np.arange(size) + 0.5) / size * (count - 1)
    bumps = np.exp(-((pixel[:, None] - np.arange(count)) ** 2))
    bumps /= np.sqrt(np.square(bumps).sum(axis=1, keepdims=True))  # keeps the spread of the knots
    return bumps @ knots @ bumps.T


def _distance_fields(char: str, fonts: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """(fonts, field, field) distance to the outline in each font, positive in the ink; (fonts,) half stroke widths."""
    from scipy.ndimage import distance_transform_edt

    inks = [np.asarray(_fitted(char, font)) > 127 for font in fonts]
    depths = [distance_transform_edt(ink) - distance_transform_edt(~ink) for ink in inks]
    fields = np.stack(depths).astype(np.float32) / (_BOX / 2)
    # Across a stroke the depth climbs from 0 to the half width and falls again, so its mean is half of that.
    widths = np.array([2 * field[field > 0].mean() for field in fields])
    return fields, widths


def _fitted(char: str, font: Any) -> "Image":
    """The character centred in a field and scaled until its longer side fills the box, as a grey image."""
    from PIL import Image, ImageDraw

    sheet = Image.new("L", (4 * _POINTS, 3 * _POINTS))
    ImageDraw.Draw(sheet).text((_POINTS, _POINTS), char, fill=255, font=font)
    glyph = sheet.crop(sheet.getbbox())
    ratio = _BOX / max(glyph.size)
    width, height = (max(1, round(side * ratio)) for side in glyph.size)
    field = Image.new("L", (_FIELD, _FIELD))
    field.paste(glyph.resize((width, height)), ((_FIELD - width) // 2, (_FIELD - height) // 2))
    return field


def _fonts_with(char: str) -> list[Any]:
    return [font for font, codepoints in _fonts() if ord(char) in codepoints]


@lru_cache(maxsize=1)
def _fonts() -> list[tuple[Any, Collection[int]]]:
    """Each face with the codepoints it holds."""
    from matplotlib import get_data_path
    from matplotlib.ft2font import FT2Font
    from PIL import ImageFont

    fonts: list[tuple[Any, Collection[int]]] = []
    for face in _FACES:
        path = f"{get_data_path()}/fonts/ttf/{face}.ttf"
        codepoints: Collection[int] = FT2Font(path).get_charmap().keys()
        if face.startswith("cm"):
            # Computer Modern keeps other signs where Unicode has accented letters.
            codepoints = {code for code in codepoints if code < 128}
        fonts.append((ImageFont.truetype(path, _POINTS, layout_engine=ImageFont.Layout.BASIC), codepoints))
    return fonts
