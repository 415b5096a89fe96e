"""Opens a dashboard of Superset in Chromium as a person would, and prints what it saw as JSON.

Run by Superset's environment, which has Playwright: python superset_browser.py PAGE PASSWORD FOLDER
"""

import json
import shutil
import sys
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page, sync_playwright

MILLISECONDS = 90_000
CHART = "[data-test='chart-container'], .chart-container, .slice_container"
ERRORS = ".ant5-alert-error, .ant-alert-error, [data-test='error-alert'], .alert-danger"
SPINNERS = ".loading, [data-test='loading-indicator']"


def main() -> None:
    page_address, password, folder = sys.argv[1:]
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        page = browser.new_page(viewport={"width": 1600, "height": 1500})
        page.set_default_timeout(MILLISECONDS)
        log_in(page, page_address, password)
        page.goto(page_address)
        seen = {"drawn": settled(page, Path(folder) / "drawn.png")}
        choose_female(page)
        seen["filtered"] = settled(page, Path(folder) / "filtered.png")
        refresh(page)
        seen["refreshed"] = settled(page, Path(folder) / "refreshed.png")
        browser.close()
    sys.stdout.write(json.dumps(seen))


def log_in(page: Page, address: str, password: str) -> None:
    parts = urlsplit(address)
    page.goto(f"{parts.scheme}://{parts.netloc}/login/")
    page.get_by_label("Username", exact=False).first.fill("admin")
    page.get_by_label("Password", exact=False).first.fill(password)
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "login" not in url)


def settled(page: Page, picture: Path) -> dict[str, object]:
    """Wait until every chart is drawn; how many there are, what they say, and what is wrong."""
    page.wait_for_selector(CHART)
    page.wait_for_load_state("networkidle")
    page.wait_for_function(
        "selector => document.querySelectorAll(selector).length === 0", arg=SPINNERS
    )
    page.wait_for_timeout(1500)  # charts that slide into their places
    page.screenshot(path=picture, full_page=True)
    drawn = page.locator("canvas, table, .superset-legacy-chart-big-number, .header-line")
    return {
        "n_charts": page.locator("[data-test='dashboard-component-chart-holder']").count(),
        "n_drawn": drawn.count(),
        "errors": page.locator(ERRORS).all_inner_texts(),
        "big_number": page.locator(".header-line").first.inner_text(),
    }


def choose_female(page: Page) -> None:
    """Set the filter by sex."""
    box = page.locator("[data-test='form-item-value'] input, .filter-item-wrapper input").first
    box.click()
    box.fill("Female")
    page.locator(".ant-select-item-option, .ant5-select-item-option").filter(
        has_text="Female"
    ).first.click()
    page.keyboard.press("Escape")
    page.locator("[data-test='filter-bar__apply-button']").click()


def refresh(page: Page) -> None:
    """Ask for everything again."""
    page.locator("[data-test='actions-trigger']").first.click()
    page.get_by_text("Refresh dashboard").click()


if __name__ == "__main__":
    main()
