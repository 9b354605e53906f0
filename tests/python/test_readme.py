"""The README's examples run unchanged, in their order, and its links lead somewhere."""

import re
from pathlib import Path

import numpy as np
import pytest

import bascule
from bascule import _environment

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
# Each example, with the fenced text that directly follows it, if any: the output of its failure.
EXAMPLES = re.findall(r"^```python\n(.*?)^```\n(?:\n```\n(.*?)^```)?", README, re.MULTILINE | re.DOTALL)


def test_the_examples_do_what_the_text_says(capsys):
    names = {}
    for code, failure in EXAMPLES:
        program = compile(code, "README.md", "exec")
        if failure:
            kind, promised = failure.strip().removesuffix("...").strip().split(": ", 1)
            with pytest.raises(Exception, match=re.escape(promised)) as caught:
                exec(program, names)
            assert f"{type(caught.value).__module__}.{type(caught.value).__qualname__}" == kind
        else:
            exec(program, names)
        for expected in re.findall(r"print\(.*# (.+)$", code, re.MULTILINE):
            assert expected in capsys.readouterr().out
    np.testing.assert_array_equal(names["y"].copy_to_host(), 1 + 2 * np.arange(1 << 20, dtype="f4"))
    assert len(EXAMPLES) == 2


def test_the_links_lead_to_files():
    prose = re.sub(r"^```.*?^```", "", README, flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", prose):
        assert (ROOT / target).exists(), target


def test_the_documentation_has_every_environment_variable():
    page = (ROOT / "python" / "docs" / "environment.md").read_text()
    assert set(re.findall(r"^\| `(BASCULE_\w+)`", page, re.MULTILINE)) == set(_environment._VARIABLES)


def test_experimental_names_are_public_names():
    page = (ROOT / "python" / "docs" / "stability.md").read_text()
    experimental = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert len(experimental) == len(set(experimental)) > 5
    assert set(experimental) <= set(bascule.__all__)
