"""Every view is opened and used in a real browser: no console error, no barrier, no overflow."""

import json

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect


@pytest.fixture
def visit(page, address):
    """Open a view and wait until nothing is being worked on."""

    def go(view):
        page.goto(f"{address}#/{view}")
        page.locator("main h1").wait_for()
        settled(page)

    return go


def settled(page):
    page.wait_for_timeout(700)
    expect(page.locator("main .working")).to_have_count(0)


@pytest.fixture
def inspected(page, look, request):
    """At the end of a test: accessibility, width, and a picture when pictures are wanted."""

    def inspect(view):
        found = Axe().run(page)
        problems = [(v["id"], v["nodes"][0]["html"]) for v in found.response["violations"]]
        assert problems == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if pictures := request.config.getoption("--screenshots"):
            name = f"explorer-{view}{'' if look == 'light' else '-' + look}.png"
            page.screenshot(path=pictures / name, full_page=view != "paper")

    return inspect


def test_network(visit, page, inspected, folder):
    visit("network?widths=4,2,3&ranks=2,2&tokens=3")
    expect(page.locator(".big").first).to_have_text("24")
    expect(page.locator("[data-tensor]")).to_have_count(6)
    page.get_by_role("button", name="key-query").hover()
    lit = page.locator(".edge.lit title").all_text_contents()
    assert sorted(title.split(":")[0] for title in lit) == sorted(
        f"layers.{i}.{name}" for i in (0, 1) for name in ("query", "key")
    )
    expect(page.locator(".chip").first).to_have_text("theorem")
    page.get_by_label("Tokens").fill("1")
    expect(page.locator(".big").first).to_have_text("21")
    assert "tokens=1" in page.url
    page.get_by_role("textbox", name="Ranks a").fill("2")
    expect(page.get_by_role("alert")).to_contain_text("one number for each of the 2 layers")
    page.get_by_role("textbox", name="Ranks a").fill("2,2")
    page.get_by_label("Tokens").fill("3")
    page.get_by_role("button", name="Prove the dimension").click()
    expect(page.get_by_text("✓ exact")).to_be_visible(timeout=60_000)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the certificate").click()
    content = json.loads(download.value.path().read_text())
    assert (content["lower"], content["upper"]) == (24, 24)
    page.locator("input[type=file]").set_input_files(download.value.path())
    expect(page.get_by_text("✓ verified")).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="Copy: Command").first.click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("neuromanifold certify --widths 4,2,3")
    inspected("network")


def test_a_network_of_a_module(visit, page, inspected):
    visit("network")
    page.get_by_label("Network", exact=True).select_option("mine.py:block")
    expect(page.locator("[data-space]")).to_have_count(3)
    page.get_by_role("button", name="keys").hover()
    expect(page.locator("[data-tensor].lit")).to_have_count(2)
    expect(page.locator("[data-space].lit")).to_have_count(1)
    page.get_by_role("button", name="Prove the dimension").click()
    expect(page.get_by_text("✓ exact")).to_be_visible(timeout=60_000)
    assert "network=mine.py" in page.url
    inspected("module")


def test_a_forged_certificate_says_so(visit, page, folder, tmp_path, look):
    if look != "light":
        pytest.skip("once is enough")
    forged = tmp_path / "forged.json"
    forged.write_text(
        (folder / "certificate.json").read_text().replace('"lower": 24', '"lower": 25')
    )
    visit("network")
    page.locator("input[type=file]").set_input_files(forged)
    expect(page.get_by_role("alert")).to_contain_text("was edited")


def test_a_proof_can_be_cancelled(visit, page, look):
    if look != "light":
        pytest.skip("once is enough")
    visit("network?widths=32,32,32,32&ranks=32,32,32&tokens=4&attention=softmax")
    page.get_by_role("button", name="Prove the dimension").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".notice.warn")).to_contain_text("cancelled")
    expect(page.get_by_label("Widths")).to_be_editable()


def test_fiber(visit, page, inspected):
    visit("fiber")
    slider = page.get_by_label("step of the walk")
    query, product = (
        page.locator(".panel", has=page.get_by_role("heading", name=name, exact=True))
        for name in ("Q · layer 0", "A = KᵀQ · layer 0")
    )
    before, fixed = (one.locator("svg text").all_text_contents() for one in (query, product))
    slider.focus()
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    expect(page.get_by_text("8 of 24")).to_be_visible()
    assert query.locator("svg text").all_text_contents() != before
    assert product.locator("svg text").all_text_contents() == fixed
    expect(query.locator("p")).to_contain_text("changed by")
    inspected("fiber")


def test_two_files(visit, page, folder, inspected):
    visit("fiber")
    chooser = page.locator("input[type=file]")
    chooser.set_input_files([folder / "a.safetensors", folder / "b.safetensors"])
    expect(page.get_by_text("✓ same function")).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="Walk from one to the other").click()
    settled(page)
    chooser.set_input_files(folder / "c.safetensors")
    expect(page.get_by_text("✗ different functions")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("An input that tells them apart")).to_be_visible()
    inspected("files")


def test_geometry(visit, page, inspected):
    visit("geometry")
    expect(page.locator(".plot canvas").first).to_be_visible(timeout=60_000)
    chip = page.locator(".chip").first
    expect(chip).to_contain_text("smooth")
    page.get_by_role("button", name="Go to the pinch").click()
    expect(chip).to_contain_text("boundary point")
    page.get_by_role("button", name="Go to the line outside").click()
    expect(chip).to_contain_text("closure only")
    page.get_by_role("button", name="Go to the crossing").click()
    expect(chip).to_contain_text("singular")
    page.get_by_label("keep it on the surface").uncheck()
    pad = page.locator(".pad")
    pad.focus()
    for _ in range(4):
        page.keyboard.press("ArrowUp")
        page.wait_for_timeout(120)
    expect(chip).to_contain_text("not in the space")
    settled(page)
    box = pad.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.3)
    page.mouse.up()
    expect(page.locator(".chip").first).to_be_visible()
    page.get_by_label("keep it on the surface").check()
    expect(chip).to_contain_text("smooth")
    page.get_by_role("button", name="Two umbrellas").click()
    settled(page)
    expect(page.get_by_role("button", name="Go to the pinch")).to_have_count(2)
    page.get_by_role("button", name="Whitney’s umbrella").click()
    settled(page)
    page.wait_for_timeout(1500)
    inspected("geometry")


def test_atlas(visit, page, inspected):
    visit("atlas")
    expect(page.locator(".heat button").first).to_be_visible()
    page.locator(".heat button").first.click()
    expect(page.get_by_text("Rows with ranks 1 and heads 1")).to_be_visible()
    page.get_by_label("Filter").fill("heads >")
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Filter").fill("heads > 1 and attention == 'softmax'")
    settled(page)
    expect(page.locator(".tile", has_text="meet the filter").locator("b")).to_have_text("20")
    assert "where=heads" in page.url
    page.wait_for_timeout(1000)
    page.get_by_label("Filter").fill("")
    page.get_by_label("Open").select_option("heads")
    expect(page.locator(".tile", has_text="meet the filter").locator("b")).to_have_text("1,020")
    page.get_by_label("Filter").fill("attention == 'softmax'")
    expect(page.locator(".tile", has_text="meet the filter").locator("b")).to_have_text("510")
    page.wait_for_timeout(1000)
    inspected("atlas")
    page.get_by_role("link", name="prove again").first.click()
    expect(page.get_by_label("Attention")).to_have_value("softmax")


def test_checkpoint(visit, page, inspected):
    visit("checkpoint")
    expect(page.locator(".big").first).to_contain_text("%")
    page.get_by_label("Beside it").select_option("model-b")
    settled(page)
    expect(page.locator(".big")).to_have_count(2)
    expect(page.get_by_role("heading", name="model-a beside model-b")).to_be_visible()
    expect(page.locator(".heat .cell")).to_have_count(16)
    page.get_by_label("Show").select_option("value–output: stable rank")
    page.get_by_label("layer 1, head 2").first.click()
    expect(page.get_by_text("Layer 1, head 2").first).to_be_visible()
    assert "second=model-b" in page.url
    inspected("checkpoint")


def test_paper(visit, page, inspected):
    visit("paper")
    page.get_by_label("Search").fill("lemma-3.1")
    expect(page.locator("article")).to_have_count(1)
    page.get_by_role("button", name="Check it now").click()
    expect(page.get_by_text("✓ holds")).to_be_visible(timeout=60_000)
    page.get_by_label("Search").fill("")
    inspected("paper")


def test_an_address_of_another_run_says_what_to_do(browser, address):
    page = browser.new_page()
    page.goto(address.replace("token=", "token=x") + "#/network")
    expect(page.get_by_text("token is missing or of another run").first).to_be_visible()
    page.close()


def test_the_whole_page_can_be_used_with_the_keyboard(visit, page, look):
    if look != "light":
        pytest.skip("once is enough")
    visit("network")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the view")).to_be_focused()
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("What does the space of functions look like?")
    expect(page.get_by_role("link", name="Geometry")).to_have_attribute("aria-current", "page")
