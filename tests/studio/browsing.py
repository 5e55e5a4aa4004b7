"""A user's browser. What no page may ever do is noted: say something on the console, fail, or ask another host."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

AXE = Path(__file__).with_name("axe.min.js")
SCREENSHOTS = os.environ.get("PENSTOCK_SCREENSHOTS")
WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


class Studio:
    """One user's browser."""

    def __init__(self, browser: Browser, url: str, **options: Any):
        given: dict[str, Any] = {"viewport": WIDE, "color_scheme": "light", "locale": "en-GB", **options}
        self._context = browser.new_context(**given)
        self.url, self.problems, self.expected = url, list[str](), list[str]()
        self.page: Page = self._context.new_page()
        self.page.on("console", lambda m: m.type in ("error", "warning") and self._tell(f"console: {m.text}"))
        self.page.on("pageerror", lambda error: self._tell(f"error: {error}"))
        self.page.on("request", lambda r: r.url.startswith((url, "data:", "blob:")) or self._tell(f"asked {r.url}"))

    def _tell(self, problem: str) -> None:
        if not any(part in problem for part in self.expected):
            self.problems.append(problem)

    def expects(self, *parts: str) -> None:
        """What the console will say is what the test is about."""
        self.expected += parts

    def go(self, route: str = "graph") -> Page:
        self.page.goto(f"{self.url}/#/{route}")
        return self.page

    def use(self, text: str, keep: bool = False) -> None:
        """Sign in with a token."""
        dialog = self.page.get_by_role("dialog", name="Sign in")
        dialog.get_by_label("Token").fill(text)
        if keep:
            dialog.get_by_label("Keep it until this tab is closed").check()
        dialog.get_by_role("button", name="Sign in").click()

    def accessible(self) -> None:
        """No finding of axe-core that is serious or critical, in light and in dark."""
        for scheme in ("light", "dark"):
            self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            # as a script of its own, which the content policy of the page would refuse
            self.page.evaluate(AXE.read_text())
            found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
            serious = [
                f"{scheme}: {v['id']}: {node['html']}: {node['failureSummary']}"
                for v in found["violations"]
                if v["impact"] in ("serious", "critical")
                for node in v["nodes"][:3]
            ]
            assert not serious, "\n".join(serious)
        self.page.emulate_media(color_scheme="light")

    def shoot(self, name: str) -> None:
        """A picture for the docs, if they are asked for."""
        if SCREENSHOTS:
            self.page.mouse.move(0, 0)
            self.page.screenshot(path=Path(SCREENSHOTS) / f"{name}.png", animations="disabled")

    def close(self) -> None:
        self._context.close()
