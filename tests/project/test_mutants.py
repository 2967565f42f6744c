"""The list of mutants fits the code, and every function of the paper map has one."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.__main__ import named_tests
from tests.mutants.mutants import MUTANTS, SOURCE


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name[:80])
def test_a_mutant_is_one_change_of_valid_code(mutant):
    text = (SOURCE / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) >= 1, "the text is not there any more"
    changed = text.replace(mutant.old, mutant.new, 1)
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text))


def test_every_function_of_the_map_has_a_mutant():
    assert set(named_tests()) - {one.function for one in MUTANTS} == set()


def test_every_mutant_is_of_a_function_of_the_map():
    assert {one.function for one in MUTANTS} - set(named_tests()) == set()
