"""A spelling checker: the nearest words of Python's own documentation, by Levenshtein distance.

    python samples/levenshtein.py [WORD...]

One thread compares one misspelled word with one of the words that occur in the docstrings of the standard library. The
distances are compared with a plain implementation in Python.
"""

import argparse
import ast
import pathlib
import re
import sys

import numpy as np

import bascule

# The text is passed as the bytes of all words, one after another, with the offset of each word.
KERNEL = r"""
constexpr int LONGEST = 24;

__global__ void levenshtein(const unsigned char* words, const int* word_starts, int count,
                            const unsigned char* queries, const int* query_starts,
                            bascule::array_view<unsigned char, 2> distances) {
    const int w = blockIdx.x * blockDim.x + threadIdx.x, q = blockIdx.y;
    if (w >= count) return;
    const unsigned char *word = words + word_starts[w], *query = queries + query_starts[q];
    const int length = word_starts[w + 1] - word_starts[w], query_length = query_starts[q + 1] - query_starts[q];
    unsigned char row[LONGEST + 1];  // distances between the query up to some letter and each prefix of the word
    for (int i = 0; i <= length; ++i) row[i] = i;
    for (int j = 0; j < query_length; ++j) {
        int diagonal = row[0];
        row[0] = j + 1;
        for (int i = 0; i < length; ++i) {
            const int replaced = diagonal + (word[i] != query[j]);
            diagonal = row[i + 1];
            row[i + 1] = min(replaced, min(row[i], row[i + 1]) + 1);
        }
    }
    distances(q, w) = row[length];
}
"""
LONGEST, BLOCK = 24, 128
MODULES = [
    *("argparse", "ast", "asyncio", "collections", "configparser", "datetime", "email/message", "fractions", "ftplib"),
    *("functools", "heapq", "inspect", "mailbox", "pathlib", "pickletools", "random", "shutil", "socket", "statistics"),
    *("string", "subprocess", "tarfile", "tempfile", "threading", "turtle", "typing", "unittest/mock", "zipfile"),
]
MISSPELLED = [
    *("recieve", "seperate", "accross", "argumnets", "wich", "lenght", "retrun", "exeption", "sequnce"),
    *("occured", "adress", "begining", "succesful"),
]


def words_of_the_standard_library():
    """The words of MODULES' docstrings, sorted."""
    library, words = pathlib.Path(ast.__file__).parent, set()
    for name in MODULES:
        path = library / f"{name}.py"  # or a package
        text = (path if path.exists() else library / name / "__init__.py").read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                words.update(re.findall(r"\b[a-z]{3,24}\b", (ast.get_docstring(node) or "").lower()))
    return sorted(words)


def on_the_device(words):
    """The bytes of all words, with the offsets of each and of the end."""
    text = np.frombuffer("".join(words).encode("ascii"), np.uint8)
    return bascule.to_device(text), bascule.to_device(np.cumsum([0, *map(len, words)], dtype=np.int32))


def plain(a, b):
    """The Levenshtein distance of two strings."""
    row = list(range(len(a) + 1))
    for j, letter in enumerate(b, 1):
        diagonal, row[0] = row[0], j
        for i, other in enumerate(a, 1):
            diagonal, row[i] = row[i], min(diagonal + (letter != other), row[i - 1] + 1, row[i] + 1)
    return row[-1]


def main():
    parser = argparse.ArgumentParser(description="Find the nearest words of Python's documentation.")
    parser.add_argument("words", nargs="*", default=MISSPELLED, help=f"default: {' '.join(MISSPELLED[:3])} ...")
    queries = parser.parse_args().words
    if not all(re.fullmatch("[a-z]{1,24}", query) for query in queries):
        parser.error(f"a word is 1 to {LONGEST} letters, a to z")

    words = words_of_the_standard_library()
    print(f"device: {bascule.current_device()!r}")
    distances = bascule.device_array((len(queries), len(words)), np.uint8)
    kernel = bascule.compile(KERNEL).levenshtein
    grid = (-(-len(words) // BLOCK), len(queries))
    kernel[grid, BLOCK](*on_the_device(words), len(words), *on_the_device(queries), distances)
    distances = distances.copy_to_host()

    for query, row in zip(queries, distances, strict=True):
        nearest = [words[i] for i in np.flatnonzero(row == row.min())]
        print(f"{query:12} -> {', '.join(nearest[:4])} (distance {row.min()})")
    expected = np.array([[plain(query, word) for word in words] for query in queries])
    differing = int((distances != expected).sum())
    print(f"{'WRONG' if differing else 'ok'}    {differing} of {expected.size} distances differ from plain Python's")
    if differing:
        sys.exit("levenshtein: the distances are not those of plain Python")


if __name__ == "__main__":
    main()
