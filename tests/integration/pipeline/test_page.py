"""The page of decisions in a real browser and by plain requests, over a real Kafka, Postgres and worker."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from itertools import product
from urllib.parse import urlencode

import httpx
import pytest
import pytest_asyncio
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from mnemolog import AsyncMemoryClient
from mnemolog.client.connections import ReadPool
from mnemolog.server.gate import COOKIE
from mnemolog.server.keys import KeyStore, make_key
from mnemolog.server.serve import serving
from mnemolog.settings import Settings
from mnemolog.streams.settings import StreamsSettings
from tests.support.programs import required_program

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]
USER = "page/ alice&<b>"
HOSTILE = '<script>document.title="gone"</script>'
PAGES = ("facts", "settle", "people", "diff", "search")
SECONDS = 20


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def settings(shared_worker: StreamsSettings) -> Settings:
    """Those of a server with a user's memory: a home that moved, a held denial, a sister, and hostile words."""
    given = {"http_port": 0, "http_rate": 0, "http_page_commands": True}
    settings = Settings.model_validate(shared_worker.model_dump() | given)
    async with AsyncMemoryClient(settings=settings) as memory:
        scope = memory.scope(user_id=USER)
        for text in (
            "I live in Berlin.",
            "I am allergic to nuts. My sister is called Clara.",
            "I moved from Berlin to Munich.",
            "I'm not allergic to nuts after all.",
        ):
            assert (await scope.add(text, speaker="Alice", wait=SECONDS)).success
        assert (await scope.add(HOSTILE, infer=False, speaker="Alice", wait=SECONDS)).success
    return settings


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def url(settings: Settings) -> AsyncIterator[str]:
    async with serving(settings, without_keys=True) as served:
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    options = ChromeOptions()
    options.binary_location = required_program("chromium")
    for one in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=390,844"):
        options.add_argument(one)
    driver = Chrome(options, ChromeService(required_program("chromedriver")))
    yield driver
    driver.quit()


async def test_each_page_shows_words_of_users_as_text_alone(url: str) -> None:
    async with httpx.AsyncClient(base_url=url, timeout=SECONDS) as http:
        for page in PAGES:
            answer = await http.get(f"/page/{page}", params={"user_id": USER, "q": "Where does Alice live?"})
            assert answer.status_code == 200, answer.text
            assert answer.text.startswith("<!doctype html>")
            assert "<script>document" not in answer.text
            assert "script-src 'self'" in answer.headers["content-security-policy"]
        answer = await http.get("/page/facts", params={"user_id": USER})
        assert "&lt;script&gt;document" in answer.text
        facts = (await http.get("/v1/facts", params={"user_id": USER})).json()["items"]
        for fact in facts:
            answer = await http.get("/page/fact", params={"user_id": USER, "fact_id": fact["fact_id"]})
            assert answer.status_code == 200, answer.text
        unknown = await http.get("/page/fact", params={"user_id": "somebody", "fact_id": facts[0]["fact_id"]})
        assert (unknown.status_code, facts[0]["text"] in unknown.text) == (404, False)
        assert "alice" not in unknown.text, "whose it is, is said to nobody"
        assert (await http.get("/page/failed")).status_code == 200
        assert (await http.get("/")).status_code == 200


async def test_a_form_of_another_site_changes_nothing(url: str, settings: Settings) -> None:
    async with AsyncMemoryClient(settings=settings) as memory, httpx.AsyncClient(base_url=url) as http:
        (held,) = await memory.pending(user_id=USER)
        form = {"what": "confirm", "target": str(held.event_id), "user_id": USER}
        for origin in ({}, {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"}):
            assert (await http.post("/page/settle", data=form, headers=origin)).status_code == 403
        assert len(await memory.pending(user_id=USER)) == 1


async def test_who_has_signed_in_sees_what_the_key_may_see(settings: Settings) -> None:
    pool = ReadPool(settings.postgres or "", size=1, statement_timeout=10.0)
    keys = KeyStore(pool, now=lambda: datetime.now(UTC))
    key, text = make_key("page", tenant=settings.tenant, users=USER, rights=["read"], at=datetime.now(UTC))
    await keys.create(key)
    only_reads = settings.model_copy(update={"http_page_commands": False})
    async with serving(only_reads, without_keys=False) as served, httpx.AsyncClient(base_url=served) as http:
        same_site = {"Origin": served}
        assert (await http.get("/page/facts")).headers["location"] == "/page/sign-in"
        wrong = await http.post("/page/sign-in", data={"key": f"{text}x"}, headers=same_site)
        assert (wrong.status_code, COOKIE in http.cookies) == (401, False)
        assert 'role="alert"' in wrong.text
        right = await http.post("/page/sign-in", data={"key": text}, headers=same_site)
        assert all(word in right.headers["set-cookie"].lower() for word in ("httponly", "samesite=strict"))
        assert "Munich" in (await http.get("/page/facts")).text
        assert (await http.get("/page/facts", params={"user_id": "somebody"})).status_code == 403
        assert (await http.get("/page/failed")).status_code == 403
        assert (await http.get("/v1/facts")).status_code == 401, "the API takes no cookie"
        form = {"what": "reject", "target": "0" * 8}
        assert (await http.post("/page/settle", data=form, headers=same_site)).status_code == 403
        await http.post("/page/sign-out", headers=same_site)
        assert COOKIE not in http.cookies
    await keys.close()


async def test_a_browser_moves_through_time_and_settles_what_waits(url: str, browser: Chrome) -> None:
    """At the width of a phone, with the keyboard, and with no error in its console."""
    await asyncio.to_thread(_walk, url, browser)  # the server runs in this loop
    await asyncio.to_thread(_look_at_all, url, browser)


CONTROLS = {"button", "link", "textbox", "searchbox", "slider", "combobox", "image", "navigation", "columnheader"}


def _look_at_all(url: str, browser: Chrome) -> None:
    """In light and dark: controls have names for a screen reader, and nothing is wider than a phone."""
    for page, scheme in product(PAGES, ("light", "dark")):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        browser.get(f"{url}/page/{page}?{urlencode({'user_id': USER, 'q': 'home'})}")
        nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        controls = [one for one in nodes if not one["ignored"] and one["role"]["value"] in CONTROLS]
        assert [one["role"]["value"] for one in controls if not one["name"]["value"]] == []
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
        soft = browser.find_element(By.CLASS_NAME, "scope").value_of_css_property("color")
        assert (sum(map(int, re.findall(r"\d+", soft)[:3])) > 384) == (scheme == "dark")


def _keep_screenshot(browser: Chrome, name: str) -> None:
    """For docs/page.md: `MNEMOLOG_SCREENSHOTS=docs/images make test ARGS="-k page"` writes them."""
    if folder := os.environ.get("MNEMOLOG_SCREENSHOTS"):
        browser.save_screenshot(f"{folder}/{name}.png")


def _walk(url: str, browser: Chrome) -> None:
    replaced = (NoSuchElementException, StaleElementReferenceException)  # a page may load between find and read
    wait = WebDriverWait(browser, SECONDS, ignored_exceptions=replaced)
    browser.get(url)
    browser.find_element(By.ID, "user_id").send_keys(USER, Keys.ENTER)
    wait.until(lambda page: "Munich" in page.find_element(By.ID, "facts").text)
    assert [browser.find_element(By.ID, one).get_attribute("value") for one in ("believed", "true")] == ["1000", "1000"]
    assert HOSTILE in browser.find_element(By.ID, "facts").text
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    browser.find_element(By.ID, "believed").send_keys(Keys.HOME)
    wait.until(lambda page: "what was known on" in page.find_element(By.ID, "facts").text)
    assert "Munich" not in browser.find_element(By.ID, "facts").text
    _keep_screenshot(browser, "page-then")
    browser.find_element(By.LINK_TEXT, "Search").click()
    browser.find_element(By.ID, "q").send_keys("Where does Alice live?", Keys.ENTER)
    wait.until(lambda page: "Munich" in page.find_element(By.TAG_NAME, "main").text)
    wait.until(lambda page: page.find_element(By.PARTIAL_LINK_TEXT, "Munich")).click()
    wait.until(lambda page: "I moved from Berlin to Munich." in page.find_element(By.TAG_NAME, "blockquote").text)
    _keep_screenshot(browser, "page-fact")
    browser.find_element(By.LINK_TEXT, "People").click()
    wait.until(lambda page: "sibling" in page.find_element(By.TAG_NAME, "svg").text)
    _keep_screenshot(browser, "page-people")
    browser.find_element(By.LINK_TEXT, "To settle").click()
    wait.until(lambda page: page.find_element(By.XPATH, "//button[.='Confirm']")).click()
    wait.until(lambda page: "confirms (0)" in page.find_element(By.TAG_NAME, "main").text)
    browser.find_element(By.LINK_TEXT, "Facts").click()
    wait.until(lambda page: page.find_elements(By.ID, "facts"))
    assert "is allergic to nuts" not in browser.find_element(By.ID, "facts").text
    assert [
        entry
        for entry in browser.get_log("browser")  # type: ignore[no-untyped-call] # selenium
        if entry["level"] == "SEVERE"
    ] == []
