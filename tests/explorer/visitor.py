"""The page in a browser, as a visitor sees and uses it."""

import base64
import io
import time

import numpy as np
from PIL import Image
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from tests.report.test_browser import LAPTOP, PHONE


class Page:
    """The page, as a visitor sees it."""

    def __init__(self, driver, url: str) -> None:
        self.driver, self.url = driver, url

    def run(self, script: str, *given):
        return self.driver.execute_script(script, *given)

    def until(self, script: str, *given, seconds: float = 20.0):
        """Wait until a script gives something true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.run(f"return ({script})", *given)
            if found:
                return found
            time.sleep(0.03)
        raise AssertionError(f"never true: {script}; the panel says {self.panel()[:300]!r}")

    def open(self, fragment: str = "", size=LAPTOP, scheme: str = "light") -> "Page":
        width, height = size
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.driver.get("about:blank")
        self.driver.get(self.url + fragment)
        self.until("document.body.dataset.ready === 'yes'")
        return self.settled()

    def settled(self) -> "Page":
        """Wait for what is asked for and drawn."""
        self.until("!entourage.map.wanted && !document.body.classList.contains('busy')")
        return self

    def panel(self) -> str:
        return self.run("return document.getElementById('panel').innerText")

    def find(self, selector: str):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def pixels(self, canvas: str = "points") -> np.ndarray:
        """What a canvas shows, (H, W, 4)."""
        self.settled()
        drawn = self.run("return document.getElementById(arguments[0]).toDataURL()", canvas)
        return np.asarray(Image.open(io.BytesIO(base64.b64decode(drawn.partition(",")[2]))).convert("RGBA"))

    def place(self, row: int) -> list[float]:
        return self.run("return entourage.map.camera.toScreen(...entourage.map.place(arguments[0]))", row)

    def point_at(self, row: int) -> ActionChains:
        canvas, (x, y) = self.find("#points"), self.place(row)
        size = canvas.size
        return ActionChains(self.driver, duration=20).move_to_element_with_offset(
            canvas, round(x - size["width"] / 2), round(y - size["height"] / 2)
        )

    def press(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def drop(self, name: str, content: bytes) -> None:
        """Drop a file on the page."""
        self.run(
            """const bytes = Uint8Array.from(atob(arguments[1]), (letter) => letter.charCodeAt(0));
            const given = new DataTransfer();
            given.items.add(new File([bytes], arguments[0]));
            window.dispatchEvent(new DragEvent('drop', {dataTransfer: given, bubbles: true, cancelable: true}));""",
            name,
            base64.b64encode(content).decode(),
        )

    def complaints(self) -> list[str]:
        """What the browser objects to: refused by the policy, thrown, not found."""
        return [each["message"] for each in self.driver.get_log("browser")]
