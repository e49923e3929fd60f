"""Chaos at a small scale; in full: ``python -m benchmarks.service_chaos``."""

import asyncio

from benchmarks.service_chaos import chaos
from benchmarks.service_monkeys import DEEDS


def test_every_acknowledged_request_ends_in_one_right_evaluation_whatever_breaks(tmp_path):
    found = asyncio.run(chaos(4.0, tmp_path, seed=1, searches=3, batch=4, pace_s=0.5))
    assert found["wrong"] == [], (tmp_path / "server.log").read_text()[-3000:]
    assert found["states"] == {"done": found["acknowledged"]}
    assert found["acknowledged"] > 0
    assert found["waited_for"] > 0
    assert set(found["broke"]) == set(DEEDS)
    assert found["exit_status"] == 0
