"""The threat model and the zoo name each other: no class without a file, no file without a line."""

import re

import zoo

PAGE = (zoo.HERE.parents[1] / "docs" / "threat-model.md").read_text()
PATTERNS = set(re.findall(r"`([a-h]\d\d)_\*`", PAGE))


def test_every_offender_has_a_line_in_the_threat_model():
    prefixes = {animal.path.stem[:3] for animal in zoo.animals("offenders")}
    assert prefixes <= PATTERNS


def test_every_line_of_the_threat_model_has_an_offender():
    prefixes = {animal.path.stem[:3] for animal in zoo.animals("offenders")}
    assert prefixes >= PATTERNS


def test_a_files_name_and_its_catalogue_number_agree():
    for animal in zoo.animals("offenders"):
        letter, digits = animal.path.stem[0].upper(), int(animal.path.stem[1:3])
        assert animal.number == f"{letter}{digits}", animal.path.name


def test_the_zoo_is_large_enough_to_mean_something():
    assert len(zoo.animals("offenders")) >= 40
    assert len(zoo.animals("honest")) >= 25
