"""Debian's Chromium without a window, for tests of pages: it opens a file and hears its console.

`browser` is the fixture: `driver = browser(path)` opens a page, `errors(driver)` tells what its
console complained of. Where Chromium is missing, tests are skipped; on CI, which must have it, they
fail.
"""

import base64
import io
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from selenium import webdriver

NEEDED = {"chromium": "chromium", "chromedriver": "chromium-driver"}
"""Program → Debian's package."""
QUIET = (
    "--headless=new",
    "--no-sandbox",  # as root in a container there is none
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)

Open = Callable[..., webdriver.Chrome]


@pytest.fixture(scope="module")
def browser() -> Iterator[Open]:
    """A function that opens a page from disk, in a window of this size, in one browser."""
    missing = [package for program, package in NEEDED.items() if shutil.which(program) is None]
    if missing:
        told = f"no browser to test pages in: apt-get install {' '.join(missing)}"
        pytest.fail(told) if os.environ.get("CI") else pytest.skip(told)
    driver = started()
    try:
        yield lambda path, width=1280, height=900: opened(driver, path, width, height)
    finally:
        driver.quit()


def started() -> webdriver.Chrome:
    """A browser that keeps what its console says."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in QUIET:
        options.add_argument(flag)
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    return webdriver.Chrome(options=options, service=service)


def opened(driver: webdriver.Chrome, path: Path, width: int, height: int) -> webdriver.Chrome:
    """The page in a window of this inner size, as on a screen of that size."""
    size: dict[str, Any] = {"width": width, "height": height, "deviceScaleFactor": 1}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**size, "mobile": width < 600})
    driver.get_log("browser")  # what an earlier page said is not of this one
    driver.get(path.resolve().as_uri())
    return driver


def pictured(driver: webdriver.Chrome, path: Path) -> Image.Image:
    """The whole page, also what is below the window, kept as PNG."""
    ask = "const page = document.documentElement; return [page.clientWidth, page.scrollHeight]"
    width, height = driver.execute_script(ask)  # asking lays the page out
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    told = driver.execute_cdp_cmd(
        "Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip}
    )
    path.write_bytes(base64.b64decode(told["data"]))
    return Image.open(io.BytesIO(path.read_bytes())).convert("RGB")


def errors(driver: webdriver.Chrome) -> list[str]:
    """What the console complained of since the page was opened, or since this was asked."""
    return [
        entry["message"]
        for entry in driver.get_log("browser")
        if entry["level"] in ("SEVERE", "WARNING")
    ]
