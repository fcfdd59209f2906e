"""Takes the pictures of docs/images that show a report.

    make demo && python -m evalpipe_tests.reports.pictures [REPORT]

REPORT is the demo's by default; one of 500 tasks and 10 agents is made here.
"""

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

from evalpipe.reports import html_report
from evalpipe_tests.reports.big_sweep import full_sweep
from evalpipe_tests.reports.browser import Browser

_TOP = Path(__file__).parents[2]
IMAGES = _TOP / "docs" / "images"


def main() -> None:
    """Write the pictures, and print their names."""
    demo = Path(sys.argv[1]) if len(sys.argv) > 1 else _TOP / "data/lake/reports/demo/report.html"
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "large.html"
        large.write_text(html_report(full_sweep(10, 500, 4)), encoding="utf-8")
        with Browser(Path(folder) / "profile") as browser:
            for name, page, width, height, dark in (
                ("report.png", demo, 1280, 1420, False),
                ("report-phone-dark.png", demo, 390, 844, True),
                ("report-desktop.png", large, 1280, 900, False),
                ("report-large-phone.png", large, 390, 844, False),
            ):
                found = browser.render(page.resolve(), width=width, height=height, dark=dark)
                picture = Image.open(io.BytesIO(found.picture)).convert("RGB")
                # Flat colours: a third of the bytes, and no difference to be seen.
                picture.quantize(64, dither=Image.Dither.NONE).save(IMAGES / name, optimize=True)
                print(IMAGES / name)


if __name__ == "__main__":
    main()
