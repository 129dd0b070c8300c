"""An explorer that runs, and a real browser that looks at it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

import neuromanifold as nm
from checkpoints.models import make_model
from commands import MAIN

TOKEN = "tokenofthebrowsertests"
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--use-angle=swiftshader", "--enable-unsafe-swiftshader"),  # WebGL without a graphics card
)
expect.set_options(timeout=60_000)  # a worker loads JAX first, and the machine may be busy


def pytest_addoption(parser):
    parser.addoption(
        "--screenshots", type=Path, help="write a picture of every view to this folder"
    )


def chromium():
    """The browser: Debian's, or the one named by CHROMIUM."""
    names = (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    if found is None:
        pytest.exit("no Chromium was found: apt-get install chromium, or set CHROMIUM", 2)
    return found


MODULE = """
import jax, jax.numpy as jnp, neuromanifold as nm
x, keys, out = nm.Space("stream", 3), nm.Space("keys", 2, nm.GL(2)), nm.Space("out", 2)
def layer(w, X):
    return w["value"] @ X @ jax.nn.softmax((w["key"] @ X).T @ (w["query"] @ X), axis=0)
block = nm.network(
    layer,
    {"query": jnp.zeros((2, 3)), "key": jnp.zeros((2, 3)), "value": jnp.zeros((2, 3))},
    jnp.zeros((3, 4)),
    spaces={"query": (keys.dual, x.dual), "key": (keys, x.dual), "value": (out, x.dual)},
    name="one softmax layer",
)
"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Weights of one function and of another, a certificate, an atlas."""
    folder = tmp_path_factory.mktemp("explored")
    net = nm.Architecture((3, 2), (2,), 4, "softmax")
    weights = nm.random_weights(net, 0)
    nm.save_weights(weights, folder / "a.safetensors")
    nm.save_weights(nm.sample_fiber(weights, 1).points[0], folder / "b.safetensors")
    nm.save_weights(nm.random_weights(net, 1), folder / "c.safetensors")
    nm.certify(nm.Architecture((4, 2, 3), (2, 2), 3)).save(folder / "certificate.json")
    for seed, name in enumerate(("model-a", "model-b")):
        make_model(folder / name, "gpt2", seed)
    (folder / "mine.py").write_text(MODULE)
    grid = folder / "grid.toml"
    grid.write_text(
        'name = "small"\n[architecture]\nwidths = { each = "2..3" }\nranks = { each = "1..3" }\n'
        'tokens = 2\nattention = ["lightning", "softmax"]\nheads = "1..3"\n'
        '[tasks]\nwhere = "ranks[0] <= widths[0]"\n'
    )
    run = [sys.executable, "-c", MAIN, "atlas", "run", grid, "--out", folder / "small.sqlite"]
    subprocess.run([*run, "--workers", "1"], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def address(folder):
    """Where the explorer answers, started as a user starts it."""
    command = [sys.executable, "-c", MAIN, "explore", folder / "small.sqlite"]
    command += [folder / "model-a", folder / "model-b", f"{folder / 'mine.py'}:block"]
    process = subprocess.Popen(
        [*command, "--no-browser", "--token", TOKEN], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    assert found
    yield found[0]
    process.terminate()
    process.wait(10)
    process.stdout.close()


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture(params=["light", "dark", "phone", "phone-dark"])
def look(request):
    """How the page is looked at; in the dark on a phone only for pictures, nothing new happens."""
    if request.param == "phone-dark" and not request.config.getoption("--screenshots"):
        pytest.skip("for pictures")
    return request.param


@pytest.fixture
def page(browser, look):
    """A page that fails its test when the console has an error or anything comes from outside."""
    context = browser.new_context(
        viewport={"width": 390 if look.startswith("phone") else 1400, "height": 900},
        color_scheme="dark" if look.endswith("dark") else "light",
        permissions=["clipboard-read", "clipboard-write"],
    )
    page = context.new_page()
    page.set_default_timeout(60_000)
    errors, asked = [], []
    refused = "status of 400"  # a wrong question, which the page answers with its sentence
    page.on(
        "console",
        lambda m: errors.append(m.text) if m.type == "error" and refused not in m.text else None,
    )
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    yield page
    context.close()
    assert errors == []
    assert all(re.match(r"(http://127\.0\.0\.1:\d+/|data:|blob:)", url) for url in asked)
