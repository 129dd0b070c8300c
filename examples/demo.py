"""What this library does, in a minute: two proofs, a discovery, a comparison, a page.

Run with `make demo`; it writes `demo/index.html`.
"""

import html
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp

import neuromanifold as nm

WIDTH, HEADS, SIZE, NEURONS, TOKENS = 4, 2, 2, 3, 3


def block(w, X):
    """A decoder block in the style of Hugging Face: causal heads, a gated MLP, two residuals."""
    q, k, v = (jnp.einsum("had,dt->hat", w[name], X) for name in ("query", "key", "value"))
    seen = jnp.triu(jnp.ones((TOKENS, TOKENS), bool))
    pattern = jax.nn.softmax(jnp.where(seen, k.mT @ q, -jnp.inf), axis=-2)
    X = X + jnp.einsum("hda,hat->dt", w["output"], v @ pattern)
    return X + w["down"] @ ((w["up"] @ X) * jax.nn.silu(w["gate"] @ X))


def block_network(neuron_group):
    """The block as a diagram: which spaces lie between its tensors, and what acts on them."""
    stream, heads = nm.Space("stream", WIDTH), nm.Space("heads", HEADS)
    keys = nm.Space("keys", SIZE, nm.GL(SIZE), over=(heads,))
    values = nm.Space("values", SIZE, nm.GL(SIZE), over=(heads,))
    neurons, gates = nm.Space("neurons", NEURONS, neuron_group), nm.Space("gates", NEURONS)
    spaces = {
        "query": (heads, keys.dual, stream.dual),
        "key": (heads, keys, stream.dual),
        "value": (heads, values, stream.dual),
        "output": (heads, stream, values.dual),
        "up": (neurons, stream.dual),
        "gate": (gates, stream.dual),
        "down": (stream, neurons.dual),
    }
    sizes = {"query": (HEADS, SIZE, WIDTH), "output": (HEADS, WIDTH, SIZE), "up": (NEURONS, WIDTH)}
    sizes |= {"key": sizes["query"], "value": sizes["query"], "gate": sizes["up"]}
    sizes |= {"down": (WIDTH, NEURONS)}
    shapes = {name: jnp.zeros(sizes[name]) for name in spaces}
    inputs = jnp.zeros((WIDTH, TOKENS))
    return nm.network(block, shapes, inputs, spaces=spaces, name="decoder block")


def main(folder):
    """Compute everything, say it, and write the page."""
    started = time.perf_counter()
    small = nm.Architecture(widths=(4, 2, 3), ranks=(2, 2), tokens=3, attention="softmax")
    weights = nm.random_weights(small, seed=0)
    moved = nm.sample_fiber(weights, 1, seed=1).points[0]
    named = block_network(nm.Monomial(NEURONS, scale="nonzero"))
    ledgers = {
        "A small network: where do its parameters go?": small.network,
        "A decoder block, with two kinds of bases named": block_network(None),
        "The same, with the scalings of gated neurons named too": named,
    }
    results = {title: nm.explain(network) for title, network in ledgers.items()}
    results["Two weights that look different"] = nm.same_function(weights, moved)
    for title, result in results.items():
        sys.stdout.write(f"\n{title}\n  {result}\n")
    page = write_page(results, ledgers, Path(folder))
    seconds = time.perf_counter() - started
    sys.stdout.write(f"\nWritten to {page.resolve()} in {seconds:.0f} s; open it in a browser.\n")


def write_page(results, drawn, folder):
    """One page with every result as a notebook shows it, each network with its diagram."""
    folder.mkdir(exist_ok=True)
    sections = [
        f"<h2>{html.escape(title)}</h2>{result._repr_html_()}"
        f"{drawn[title].diagram.svg() if title in drawn else ''}"
        for title, result in results.items()
    ]
    page = folder / "index.html"
    page.write_text(
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>neuromanifold</title>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<body style='font:16px/1.5 system-ui;max-width:52em;margin:2em auto;padding:0 1em'>"
        f"<h1>What a network does not show</h1>{''.join(sections)}</body></html>",
        encoding="utf-8",
    )
    return page


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "demo")
