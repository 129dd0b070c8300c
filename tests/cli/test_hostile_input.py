"""Hostile files and sizes: a sentence or an answer, never a traceback, a hang, or the memory."""

import json
import random
import shutil
import sqlite3
import struct

import pytest

from hostile import endings
from neuromanifold.architecture import Architecture
from neuromanifold.atlas.computation import run_task
from neuromanifold.atlas.grid import Grid
from neuromanifold.atlas.store import open_for_writing
from neuromanifold.atlas.tasks import survey
from neuromanifold.certificates.certificate import _checksum
from neuromanifold.certificates.exact import certify
from neuromanifold.networks.files import save_weights
from neuromanifold.networks.weights import random_weights

FEW = 8
LIMITS = ("--max-memory", "1GB", "--max-time", "3s")

STRANGE = [
    None, True, False, 0, 1, 2, 3, -1, 2**31, 2**63, 10**12, 10**30, 0.5, -0.0, 1e300, "", "x",
    "\x1b[31mred", "\u202eabc", "é" * 2000, [], {}, [[]], [0], [1, 1], [10**9] * 3, ["1..9"],
    {"name": "x"}, {"widths": [1, 1]}, [None], [{}], "lightning", "exact", "0" * 64,
]  # fmt: skip


def damaged(content, draw):
    """A file cut, with bytes changed, doubled or put in."""
    data = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        place = draw.randrange(len(data))
        kind = draw.randrange(4)
        if kind == 0:
            data[place] ^= 1 << draw.randrange(8)
        elif kind == 1:
            data[place : place + draw.randint(1, 40)] = draw.randbytes(draw.randint(0, 40))
        elif kind == 2:
            del data[place + 1 :]
        else:
            data[place:place] = data[: draw.randint(1, 200)]
    return bytes(data)


def changed(data, draw):
    """JSON values with one of them, however deep, replaced by a strange one."""
    if isinstance(data, dict | list) and data and draw.random() < 0.8:
        copy = dict(data) if isinstance(data, dict) else list(data)
        key = draw.choice(list(copy)) if isinstance(data, dict) else draw.randrange(len(copy))
        if isinstance(data, dict) and draw.random() < 0.1:
            copy[draw.choice(["extra", "", "\x1b"])] = draw.choice(STRANGE)
        elif isinstance(data, dict) and draw.random() < 0.1:
            del copy[key]
        else:
            copy[key] = changed(copy[key], draw)
        return copy
    if isinstance(data, int) and draw.random() < 0.3:
        return data + draw.choice([-1, 1, 7])
    return draw.choice(STRANGE)


NETWORKS = [
    Architecture((3, 2), (2,), 3),
    Architecture((2, 2, 2), (1, 2), 2, "softmax"),
    Architecture((2, 2), (1,), 2, heads=2, value_ranks=(1,)),
]


def weights_cases(count, folder):
    draw = random.Random(1)
    commands = [("weights", "show"), ("fiber", "describe"), ("classify",), ("fiber", "same")]
    originals = []
    for number, network in enumerate(NETWORKS):
        save_weights(random_weights(network, number), folder / f"true-{number}")
        originals.append((folder / f"true-{number}").read_bytes())
    for number in range(count):
        content = draw.choice(originals)
        if number % 2:
            content = damaged(content, draw)
        else:
            (size,) = struct.unpack("<Q", content[:8])
            header = json.loads(content[8 : 8 + size])
            if draw.random() < 0.5:
                told = json.loads(header["__metadata__"]["architecture"])
                header["__metadata__"]["architecture"] = json.dumps(changed(told, draw))
            else:
                header = changed(header, draw)
            text = json.dumps(header).encode()
            length = draw.choice([len(text), len(text), len(text), 0, 2**40, max(0, len(text) - 5)])
            content = struct.pack("<Q", length) + text + content[8 + size :]
        file = folder / f"w{number}"
        file.write_bytes(content)
        command = draw.choice(commands)
        second = (folder / "true-0",) if command[-1] == "same" else ()
        yield (*command, file, *second, *LIMITS)


def certificate_cases(count, folder):
    draw = random.Random(2)
    originals = [certify(network).to_dict() for network in NETWORKS]
    for number in range(count):
        data = draw.choice(originals)
        if number % 3:
            content = {key: value for key, value in data.items() if key != "checksum"}
            for _ in range(draw.choice([1, 1, 2])):
                content = changed(content, draw)
            if isinstance(content, dict):
                content = {**content, "checksum": _checksum(content)}
            text = json.dumps(content).encode()
        else:
            text = damaged(json.dumps(data, indent=2).encode(), draw)
        file = folder / f"c{number}.json"
        file.write_bytes(text)
        prime = draw.choice([(), (), ("--prime", draw.choice(["0", "8388587", "15", "1e9"]))])
        yield ("verify", file, *prime, *LIMITS)


CONDITIONS = [
    "tokens > 1", "(1,)*1000000000", "10**400", "not " * 1000 + "1", "1<" * 400 + "1", "widths",
    "'a'*9**9", "len(widths) / 0", "ranks[9]", "max()", "-" * 300 + "1", "[" * 90 + "]" * 90,
    "\x1b", "9" * 900 + "*" + "9" * 90, "sum(widths)", "all(3)", "set(widths) <= {1}", "lambda: 1",
]  # fmt: skip
CHOICES = [
    "1", "0", "-1", "true", "1.5", '"1..4"', '"1..1000000000"', '"4..1"', '"1..9 step 3"', "[]",
    "[1, 1]", "[[1, 2], [1]]", '{ each = "1..1000000" }', '{ equal = "1..4" }', '{ each = [] }',
    '{ each = "1..3", equal = 1 }', '["none", { each = "1..2" }]', "9" * 30, "9" * 5000,
    "0x" + "f" * 900,
    '"softmax"', '["lightning", "softmax"]', '"none"', "nan", "inf", "1979-05-27", '"\\u001b[2J"',
    "[" * 60 + "]" * 60, '["1..1000000000"]', '[["1..1000000000"]]', "[1, [2, [3]]]", "3",
]  # fmt: skip


def grid_cases(count, folder):
    draw = random.Random(3)
    fields = ["depth", "widths", "ranks", "tokens", "attention", "heads", "value_ranks", "skip",
              "mask", "temperature", "colour"]  # fmt: skip
    tasks = ["seeds", "primes", "readouts", "max_parameters", "sample", "sample_seed"]
    sane = {"widths": '{ each = "1..3" }', "ranks": "[1]", "tokens": "2"}
    for number in range(count):
        chosen = dict(sane)
        for field in draw.sample(fields, draw.randint(0, 3)):
            chosen[field] = draw.choice(CHOICES)
        lines = ["[architecture]", *(f"{key} = {value}" for key, value in chosen.items())]
        lines.append("[tasks]")
        lines += [
            f"{key} = {draw.choice(CHOICES)}" for key in draw.sample(tasks, draw.randint(0, 2))
        ]
        if draw.random() < 0.6:
            lines.append(f"where = {json.dumps(draw.choice(CONDITIONS))}")
        file = folder / f"g{number}.toml"
        content = "\n".join(lines).encode()
        file.write_bytes(damaged(content, draw) if number % 5 == 0 else content)
        # With no task allowed, a grid that is right ends there too.
        yield ("atlas", "run", file, "--out", folder / f"g{number}.sqlite", "--limit", "0", *LIMITS)


def store_cases(count, folder):
    draw = random.Random(4)
    grid = Grid.from_dict(
        {
            "name": "\x1b[31mred",
            "architecture": {"widths": {"each": "1..2"}, "ranks": [1], "tokens": 2},
        }
    )
    tasks = list(survey(grid))
    with open_for_writing(folder / "true") as store:
        store.begin_sweep(grid, len(tasks), 0)
        store.add([run_task(task) for task in tasks], grid, 1.0)
    columns = ["architecture", "readout", "seed", "prime", "record_version", "rank", "upper",
               "verdict", "formula", "error", "seconds", "evidence", "checksum"]  # fmt: skip
    values = ["NULL", "'x'", "-1", "1e999", "x'ff00'", "99999999999", "zeroblob(40000000)", "''"]
    commands = [
        ("status",), ("show",), ("show", "--json"), ("show", "--disagreements"),
        ("export", "--csv", "t.csv"), ("map", "--out", "m"),
    ]  # fmt: skip
    for number in range(count):
        file = folder / f"a{number}.sqlite"
        if number % 2:
            file.write_bytes(damaged((folder / "true").read_bytes(), draw))
        else:
            shutil.copy(folder / "true", file)
            connection = sqlite3.connect(file)
            try:
                if draw.random() < 0.2:
                    table = draw.choice(["results", "sweeps", "architectures"])
                    connection.execute(f"DROP TABLE {table}")
                elif draw.random() < 0.2:
                    connection.execute(f"UPDATE sweeps SET tasks = {draw.choice(values)}")
                else:
                    column, value = draw.choice(columns), draw.choice(values)
                    connection.execute(f"UPDATE results SET {column} = {value}")
                connection.commit()
            except sqlite3.Error:
                pass  # SQLite itself refuses it: then the store is whole
            connection.close()
        command, *options = draw.choice(commands)
        yield ("atlas", command, file, *options)


def large_cases(count, folder):
    draw = random.Random(5)
    sizes = ["1", "3", "17", "300", "3000", "100000", "1000000000", "999999999999", "9" * 40]
    commands = [
        ("dim",), ("dim", "--certify"), ("dim", "--estimate"), ("dim", "--certify", "--json"),
        ("explain",), ("redundancy",), ("identifiable", "A.0[0,0,0]"),
        ("identifiable", "norm(V.0)"), ("discover",), ("sensitivity",),
        ("certify", "--out", "large.json", "--force"),
        ("weights", "init", "--out", "large", "--force"),
    ]  # fmt: skip
    for _ in range(count):
        depth = draw.choice([1, 1, 2, 3, 40, 2000])
        widths, ranks = (
            ",".join(draw.choice(sizes[:-1]) for _ in range(n)) for n in (depth + 1, depth)
        )
        words = ["--widths", widths, "--ranks", ranks, "--tokens", draw.choice(sizes)]
        words += ["--heads", draw.choice(["1", "1", "2", "1000000"])]
        words += ["--attention", draw.choice(["lightning", "softmax"])]
        if draw.random() < 0.3:
            words += (
                ["--inputs", draw.choice(sizes)] if draw.random() < 0.3 else ["--mask", "causal"]
            )
        command = draw.choice(commands)
        if "--inputs" in words and command[0] != "dim":
            command = ("dim", "--certify")
        yield (*command, *words, *LIMITS)


KINDS = {
    "weights": (weights_cases, 500),
    "certificates": (certificate_cases, 500),
    "grids": (grid_cases, 300),
    "stores": (store_cases, 200),
    "large": (large_cases, 200),
}


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_input_gets_a_sentence(kind, tmp_path):
    cases, _ = KINDS[kind]
    found = endings(cases(FEW, tmp_path), tmp_path)
    assert len(found) == FEW
    assert sum(ending.code == 2 for ending in found) >= FEW // 4


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_much_hostile_input_gets_a_sentence(kind, tmp_path):
    cases, count = KINDS[kind]
    found = endings(cases(count, tmp_path), tmp_path)
    assert len(found) == count
    assert sum(ending.code == 2 for ending in found) >= count // 4
