"""Headers that are given as texts include each other as files do."""

import pytest

import bascule

TEXT = '#include "a/x.h"\n__global__ void get(int* out) { *out = VALUE; }'


def value(headers, text=TEXT, **options):
    out = bascule.zeros(1, "i4")
    bascule.compile(text, options={"headers": headers, **options})["get"][1, 1](out)
    return int(out.copy_to_host()[0])


def defines(number):
    return f"#pragma once\n#define VALUE {number}\n"


@pytest.mark.parametrize(
    "directive",
    [
        '#include "y.h"',
        '%: /* a comment */ inc\\\nlude "y.h" // and one more',
        '#if __has_include("y.h")\n#include "y.h"\n#endif',
        '#include "./y.h"',
        '#include "../a/b/../y.h"',
        'constexpr const char* text = R"(\n#include "none.h"\n)";\n#include "y.h"',
    ],
)
def test_a_quoted_name_is_looked_for_beside_the_header_that_has_it(directive):
    assert value({"a/x.h": directive, "a/y.h": defines(1)}) == 1
    assert value({"a/x.h": directive, "a/y.h": defines(1), "y.h": defines(2)}) == 1


def test_a_name_in_angle_brackets_is_not():
    assert value({"a/x.h": "#include <y.h>", "a/y.h": defines(1), "y.h": defines(2)}) == 2


def test_a_name_that_is_not_beside_it_is_looked_for_as_it_is():
    assert value({"a/x.h": '#include "y.h"', "y.h": defines(2)}) == 2
    assert value({"a/x.h": '#include "b/y.h"', "b/y.h": defines(2), "a/b/y.h": defines(3)}) == 3
    assert value({"a/x.h": '#include "../y.h"', "y.h": defines(4)}) == 4


def test_directories_are_followed_through_several_headers():
    headers = {"a/x.h": '#include "b/y.h"', "a/b/y.h": '#include "../z.h"', "a/z.h": defines(5), "z.h": defines(6)}
    assert value(headers) == 5


def test_one_header_by_two_ways_is_one_header():
    headers = {
        "a/x.h": '#include "y.h"\n#include "../a/y.h"',
        "a/y.h": "#pragma once\nstruct Once { int value = 7; };\n#define VALUE Once().value",
    }
    assert value(headers, '#include "a/y.h"\n' + TEXT) == 7


def test_errors_have_the_lines_of_the_text():
    headers = {"a/x.h": 'int one;\n#include \\\n  "y.h"\nint error here;\n', "a/y.h": ""}
    with pytest.raises(bascule.CompileError, match=r"a/x\.h:4"):
        value(headers)


def test_the_cache_knows_which_header_is_meant():
    assert value({"a/x.h": '#include "y.h"', "y.h": defines(2)}) == 2
    assert value({"a/x.h": '#include "y.h"', "y.h": defines(2), "a/y.h": defines(8)}) == 8
    assert value({"a/x.h": '#include "y.h"', "y.h": defines(2)}) == 2
