import pytest

from kernelsmith.corpus.harvest import licence


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Apache License, Version 2.0", "Apache-2.0"),
        ("Permission is hereby granted, free of charge, to any person", "MIT"),
        ("GNU AFFERO GENERAL PUBLIC LICENSE", "AGPL-3.0"),
        ("GNU Lesser General Public License v3", "LGPL-3.0"),
        ("OSI Approved :: BSD License", "BSD-3-Clause"),
        ("Attribution-NonCommercial 4.0", "CC-BY-NC-4.0"),
        ("all rights reserved", "unknown"),
    ],
)
def test_a_licence_is_told_by_its_words(text, name):
    assert licence.named(text) == name


def test_a_file_speaks_for_itself_only_where_it_does():
    assert licence.of_file("# SPDX-License-Identifier: MIT\n") == "MIT"
    assert licence.of_file("# Copyright somebody\nimport mit_license\n") == ""


def test_permissive_is_a_list_and_any_is_all():
    assert licence.allowed("MIT", ("permissive",))
    assert not licence.allowed("AGPL-3.0", ("permissive",))
    assert licence.allowed("AGPL-3.0", ("AGPL-3.0",))
    assert licence.allowed("unknown", ("any",))
