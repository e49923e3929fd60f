"""How many rooms of a device a task takes while it is judged beside others."""

import pytest

from kernelsmith.evaluate.cuda.peak import Footprint
from kernelsmith.evaluate.cuda.sizing import Predicted, rooms_beside

GIGA = 10**9


@pytest.mark.parametrize(
    ("sizes", "batched", "rooms"),
    [
        ((6.44, 6.44), True, 26),  # three of them side by side
        ((6.44, 6.44), False, 31),
        ((8.6, 0.0), True, 13),
        ((8.6, 0.0), False, 21),
        ((0.1, 0.1), True, 3),
        ((40.0, 40.0), True, None),
    ],
)
def test_a_task_takes_fewer_rooms_where_its_answers_can_be_had_in_slices(sizes, batched, rooms):
    inputs, outputs = (int(each * GIGA) for each in sizes)
    footprint = Footprint(inputs=inputs, weights=0, outputs=outputs, activations=0, batched=batched)
    found = Predicted(footprint=footprint, free=150 * GIGA, total=150 * GIGA)
    assert rooms_beside(found, 1 << 30) == rooms
