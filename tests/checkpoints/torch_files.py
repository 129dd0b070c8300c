"""PyTorch files written instruction by instruction, so that the tests need no PyTorch."""

import io
import zipfile

import ml_dtypes
import numpy as np

STORAGE = {
    "float64": "DoubleStorage",
    "float32": "FloatStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "int64": "LongStorage",
    "uint8": "ByteStorage",
    "bool": "BoolStorage",
}
MAGIC = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def word(text):
    data = text.encode()
    return b"X" + len(data).to_bytes(4, "little") + data


def number(value):
    return b"\x8a\x08" + value.to_bytes(8, "little", signed=True)


def numbers(values):
    return b"(" + b"".join(map(number, values)) + b"t"


def tensor(key, dtype, count, shape, strides, offset=0, legacy=False):
    """The program that builds one tensor on a storage of `count` elements."""
    storage = (
        b"("
        + word("storage")
        + f"ctorch\n{STORAGE[np.dtype(dtype).name]}\n".encode()
        + word(key)
        + word("cpu")
        + number(count)
        + (b"N" if legacy else b"")
        + b"tQ"
    )
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + storage
        + number(offset)
        + numbers(shape)
        + numbers(strides)
        + b"\x89ccollections\nOrderedDict\n)RtR"
    )


def state_dict(programs):
    """The program of a dictionary with the `_metadata` that PyTorch hangs on it."""
    items = b"".join(word(name) + program for name, program in programs.items())
    metadata = b"}" + word("_metadata") + b"}s"
    return b"ccollections\nOrderedDict\n)R(" + items + b"u" + metadata + b"b"


def programs(arrays, legacy=False):
    """One program an array; arrays that are transposed views keep their strides."""
    return {
        name: tensor(
            str(i),
            array.dtype,
            array.size,
            array.shape,
            [stride // array.itemsize for stride in array.strides],
            legacy=legacy,
        )
        for i, (name, array) in enumerate(arrays.items())
    }


def zipped(body, storages=(), compression=zipfile.ZIP_STORED, extra=()):
    """The bytes of a file of the present format."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + body + b".")
        archive.writestr("archive/byteorder", b"little")
        for i, storage in enumerate(storages):
            archive.writestr(f"archive/data/{i}", storage)
        for name, content in extra:
            archive.writestr(name, content)
    return buffer.getvalue()


def legacy(body, storages, counts, keys=None):
    """The bytes of a file of the format before 2020."""
    system = b"\x80\x02}(" + word("little_endian") + b"\x88" + word("type_sizes") + b"}u."
    keys = [str(i) for i in range(len(storages))] if keys is None else keys
    names = b"\x80\x02](" + b"".join(map(word, keys)) + b"e."
    data = b"".join(
        count.to_bytes(8, "little") + storage
        for count, storage in zip(counts, storages, strict=True)
    )
    return MAGIC + b"\x80\x02M\xe9\x03." + system + b"\x80\x02" + body + b"." + names + data


def memory(array):
    """The bytes of an array in the order of its memory."""
    return array.tobytes("A")
