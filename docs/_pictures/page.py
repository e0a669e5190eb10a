"""Take the pictures of the report that README shows, of the page of `hocal demo` in Chromium.

    make picture

or `python docs/_pictures/page.py [PAGE]` of a page at hand. The digits, their labels and so the
page are the same each time; fonts are those of the machine.
"""

import io
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
WIDTH = 1100  # pixels: a desk screen, still legible at the width of README
HEIGHT = 900  # the first screen
MARGIN = 16
N_COLOURS = 128  # of a page with three hues, which makes a third of the file


def take(page: Path, folder: Path) -> list[Path]:
    """Write page.png, the beginning of a page, and two-items.png; return the files."""
    sys.path.insert(0, str(ROOT / "tests"))
    from report.browser import browse

    with tempfile.TemporaryDirectory() as profile, browse(Path(profile)) as browser:
        browser.screen(WIDTH, HEIGHT)
        browser.open(page)
        whole = Path(profile) / "whole.png"
        browser.screenshot(whole)
        picture = Image.open(io.BytesIO(whole.read_bytes())).convert("RGB")
        items = picture.crop(_place(browser, ".contrast"))
    first = picture.crop((0, 0, WIDTH, HEIGHT))
    pictures = {"page.png": first, "two-items.png": items}
    return [_save(image, folder / name) for name, image in pictures.items()]


def _place(browser: Any, selector: str) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of an element, and a little around it."""
    script = f"(() => {{ const b = document.querySelector('{selector}').getBoundingClientRect();"
    script += "return [b.left, b.top + scrollY, b.right, b.bottom + scrollY]; })()"
    left, top, right, bottom = map(round, browser.run(script))
    return left - MARGIN, top - MARGIN, right + MARGIN, bottom + MARGIN


def _save(picture: Any, path: Path) -> Path:
    picture.quantize(N_COLOURS).save(path, optimize=True)
    return path


def main() -> None:
    """Make the page of the demonstration, unless one is named, and take its pictures."""
    if len(sys.argv) > 1:
        taken = take(Path(sys.argv[1]).resolve(), IMAGES)
    else:
        from hocal.cli.demonstration import demonstrate

        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "hocal-demo.html"
            demonstrate().report.save(page)
            taken = take(page, IMAGES)
    for path in taken:
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
