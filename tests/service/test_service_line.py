"""Who is next: even shares between clients, priorities within one, nothing lost."""

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from kernelsmith.service.line import Line
from kernelsmith.service.store import Entry

NUMBERS = iter(range(1, 1_000_000))


def an_entry(client="ann", task="t", device=None, priority=5, backend="null"):
    return Entry(
        seq=next(NUMBERS), client=client, task=task, backend=backend, device=device,
        priority=priority,
    )  # fmt: skip


def filled(*entries):
    line = Line()
    for entry in entries:
        line.put(entry)
    return line


def served(line, turns, *, seconds=lambda _: 1.0, **how):
    """What one worker does in so many turns."""
    found, last, row = [], None, 0
    for _ in range(turns):
        turn = line.take("null", "d", last=last, row=row, **how)
        if turn is None:
            break
        row = row + 1 if last and last.entry.task == turn.entry.task else 1
        last = turn
        line.charge(turn, seconds(turn.entry))
        found.append(turn.entry)
    return found


def test_requests_of_one_client_and_task_keep_their_order():
    entries = [an_entry() for _ in range(20)]
    assert served(filled(*entries), 30) == entries


def test_a_higher_priority_of_the_same_client_goes_first():
    low, high = an_entry(priority=1), an_entry(priority=9)
    assert served(filled(low, high), 2) == [high, low]


def test_a_client_cannot_get_more_by_asking_for_more():
    line = filled(*(an_entry("greedy", priority=9) for _ in range(90)))
    for _ in range(10):
        line.put(an_entry("modest", priority=0))
    first = Counter(each.client for each in served(line, 20))
    assert first["modest"] == 10


def test_shares_are_of_time_not_of_requests():
    line = filled(*(an_entry("slow") for _ in range(99)), *(an_entry("fast") for _ in range(99)))
    done = served(line, 60, seconds=lambda entry: 10.0 if entry.client == "slow" else 1.0)
    counts = Counter(each.client for each in done)
    assert 7 <= counts["fast"] / counts["slow"] <= 13


def test_a_client_that_was_away_does_not_save_up_time():
    line = filled(*(an_entry("old") for _ in range(100)))
    served(line, 50)
    for _ in range(50):
        line.put(an_entry("new"))
    counts = Counter(each.client for each in served(line, 20))
    assert counts["old"] >= 8


def test_a_worker_stays_with_an_open_reference_and_not_forever():
    line = filled(*(an_entry(task=f"t{n % 2}") for n in range(80)))
    done = [each.task for each in served(line, 80, warm=("t1",))]
    assert done[:16] == ["t1"] * 16
    assert done[16] == "t0"
    assert Counter(done) == {"t0": 40, "t1": 40}


def test_a_request_for_another_device_or_backend_is_left_to_others():
    mine, others = an_entry(device="d"), [an_entry(device="e"), an_entry(backend="cpu")]
    line = filled(*others, mine)
    assert served(line, 5) == [mine]
    assert len(line) == 2
    assert line.take("null", "e").entry == others[0]
    assert line.take("cpu", "d").entry == others[1]


def test_what_comes_back_is_next():
    entries = [an_entry() for _ in range(3)]
    line = filled(*entries)
    (first,) = served(line, 1)
    line.put(first, first=True)
    assert served(line, 3) == entries


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 30))
def test_nothing_is_lost_and_nothing_is_handed_out_twice(seed):
    rng = random.Random(seed)
    line, put, got = Line(), [], []
    for _ in range(200):
        if rng.random() < 0.6:
            entry = an_entry(
                rng.choice("abc"),
                rng.choice("xyz"),
                rng.choice(["d", "e", None]),
                rng.randrange(10),
            )
            put.append(entry)
            line.put(entry)
        elif turn := line.take("null", rng.choice("de"), warm=rng.sample("xyz", 1)):
            line.charge(turn, rng.random())
            got.append(turn.entry)
    while turn := line.take("null", "d") or line.take("null", "e"):
        got.append(turn.entry)
    assert sorted(each.seq for each in got) == [each.seq for each in put]
    assert set(got) == set(put)
    assert len(line) == 0
