"""One elite per cell, each in its own, and the best always known."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelsmith.domain.trajectory import Outcome
from kernelsmith.search import archive as archive_module
from kernelsmith.search.archive import TOP, Archive
from kernelsmith.search.descriptors import cell_of, descriptors
from kernelsmith.search.islands import home, migrate, source_of
from kernelsmith.testing import ArchiveContract, a_failure, a_pass


class TestArchive(ArchiveContract):
    @pytest.fixture
    def archive(self):
        return Archive()


class TestArchiveOfOneDimension(ArchiveContract):
    @pytest.fixture
    def archive(self):
        return Archive(island=3, dimensions=("score",))


def random_pair(draw, index):
    source = "+".join("x" * draw.randint(1, 1200)) + f"  # {index}"
    if draw.random() < 0.3:
        return a_failure(source)
    return a_pass(source, draw.lognormvariate(0.5, 1.0), spread=draw.random() * 0.1)


def cell(elite, archive):
    return cell_of(descriptors(elite.candidate, elite.evaluation, dimensions=archive.dimensions))


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32))
def test_after_a_thousand_adds_every_elite_lies_alone_in_its_own_cell(seed):
    draw, archive = random.Random(seed), Archive()
    best: dict[tuple[int, ...], float] = {}
    for index in range(1000):
        placed = archive.add(*random_pair(draw, index))
        if placed.cell is not None:
            best[placed.cell] = max(best.get(placed.cell, 0.0), placed.score)
    assert {elite.cell for elite in archive} == set(best)
    assert len(archive) == len(best)
    for elite in archive:
        assert cell(elite, archive) == elite.cell
        assert archive.at(elite.cell) is elite
        assert elite.score > best[elite.cell] - 0.2, "only noise keeps a better one out"
    ordered = sorted((elite.score for elite in archive), reverse=True)
    assert [elite.score for elite in archive.top] == ordered[:TOP]
    assert archive.qd_score == pytest.approx(sum(ordered))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32))
def test_coverage_and_qd_score_never_fall(seed):
    draw, archive = random.Random(seed), Archive()
    coverage = qd_score = 0.0
    for index in range(200):
        placed = archive.add(*random_pair(draw, index))
        assert archive.coverage >= coverage
        assert archive.qd_score == pytest.approx(qd_score + placed.gained)
        assert (placed.gained > 0) == (placed.outcome in (Outcome.NEW, Outcome.IMPROVED))
        coverage, qd_score = archive.coverage, archive.qd_score


def filled(count=300, **options):
    draw, archive = random.Random(1), Archive(**options)
    for index in range(count):
        archive.add(*random_pair(draw, index))
    return archive


def test_other_dimensions_put_every_occupant_into_its_new_cell():
    archive = filled(dimensions=("complexity",))
    before = {elite.id for elite in archive}
    assert archive.rebin(("complexity", "score")) == 0
    assert archive.dimensions == ("complexity", "score")
    assert {elite.id for elite in archive} == before
    assert all(cell(elite, archive) == elite.cell for elite in archive)


def test_when_cells_become_one_the_best_keeps_it():
    archive = filled(dimensions=("complexity", "score"))
    best, before = archive.top[0], len(archive)
    lost = archive.rebin(("schedule",))
    assert (lost, len(archive)) == (before - 1, 1)
    assert archive.top[0].id == best.id
    assert archive.qd_score == best.score


def test_a_new_version_of_the_bins_bins_anew(monkeypatch):
    archive = filled()
    monkeypatch.setattr(archive_module, "VERSION", archive.version + 1)
    monkeypatch.setattr(archive_module, "descriptors", lambda *_, dimensions: (None, 5, None, None))
    archive.rebin()
    assert archive.version == archive_module.VERSION
    assert [elite.cell for elite in archive] == [(0, 6, 0, 0)]


def ring(*speedups):
    archives = [Archive(island=island) for island in range(len(speedups))]
    for island, speedup in enumerate(speedups):
        if speedup:
            archives[island].add(*a_pass(f"x  # {island}", speedup))
    return archives


def ids(archive):
    return sorted((elite.candidate.source, elite.migrant) for elite in archive)


def test_each_island_sends_copies_of_its_best_to_the_next_one():
    archives = ring(1.1, 1.6, 2.5)
    placed = migrate(archives, migrants=1)
    assert [(each.island, each.outcome) for each in placed] == [
        (1, Outcome.NEW),
        (2, Outcome.NEW),
        (0, Outcome.NEW),
    ]
    assert ids(archives[1]) == [("x  # 0", True), ("x  # 1", False)]
    assert ids(archives[0]) == [("x  # 0", False), ("x  # 2", True)]


def test_a_copy_does_not_travel_on():
    archives = ring(1.1, 0, 0)
    for _ in range(5):
        migrate(archives, migrants=4)
    assert [len(archive) for archive in archives] == [1, 1, 0]


def test_a_copy_must_win_its_cell():
    archives = ring(1.55, 1.9)
    archives[1].add(*a_pass("y", 1.8))
    migrate(archives, migrants=1)
    assert ids(archives[0]) == [("x  # 1", True)]
    assert ids(archives[1]) == [("x  # 1", False)]


def test_one_island_migrates_nowhere():
    assert migrate(ring(1.1), migrants=3) == []


def test_asks_go_round_and_an_empty_island_draws_from_upstream():
    assert [home(number, 3) for number in range(5)] == [0, 1, 2, 0, 1]
    archives = ring(1.1, 0, 0)
    assert [source_of(archives, island) for island in range(3)] == [archives[0]] * 3
    assert source_of(ring(0, 0), 0) is None
