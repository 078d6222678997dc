"""Files of skbnp as what they are: a document and arrays, to be damaged at one place."""

import json
import zipfile

import numpy as np


class Document:
    """What an archive holds, before anything is made of it.

    Attributes
    ----------
    tree : dict
        The JSON document.
    arrays : dict of str to ndarray
        All numbers of one dtype, one after the other.
    places : list of (names, dtype, start, size)
        Where each array of the document begins, and the keys that lead to it.
    """

    def __init__(self, path):
        with zipfile.ZipFile(path) as archive:
            self.tree = json.loads(archive.read("document.json"))
            self.arrays = {
                name.removesuffix(".npy"): np.lib.format.read_array(archive.open(name))
                for name in archive.namelist()
                if name.endswith(".npy")
            }
        self.places, self._starts = [], dict.fromkeys(self.arrays, 0)
        self._walk(self.tree["content"], ())

    def _walk(self, node, names):
        if isinstance(node, list):
            for item in node:
                self._walk(item, names)
        elif isinstance(node, dict) and "$array" in node:
            dtype, shape = node["$array"]
            size = int(np.prod(shape))
            self.places.append((names, dtype, self._starts[dtype], size))
            self._starts[dtype] += size
        elif isinstance(node, dict) and "$object" in node:
            self._walk(node["$object"][1], names)
        elif isinstance(node, dict):
            for name, item in node.items():
                self._walk(item, names if name.startswith("$") else (*names, name))

    def write(self, path):
        """An archive that is whole, its checksums right."""
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            for name, array in self.arrays.items():
                with archive.open(f"{name}.npy", "w") as member:
                    np.lib.format.write_array(member, array, version=(1, 0))
            archive.writestr("document.json", json.dumps(self.tree))

    def write_with(self, path, dtype, place, value):
        """The same with another number at a place of the array of a dtype."""
        array = self.arrays[dtype]
        before, array[place] = array[place], value
        self.write(path)
        array[place] = before
