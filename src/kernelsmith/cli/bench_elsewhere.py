"""Who judges a bench when this machine does not: evaluators looked at once, before anything."""

from kernelsmith.bench.crew import Staff
from kernelsmith.bench.plan import Plan
from kernelsmith.cli.elsewhere import elsewhere, is_cluster
from kernelsmith.domain.device import Device
from kernelsmith.errors import UsageError

WORKER = "kernelsmith.cli.bench_worker"
"""The module that every worker of a bench runs."""
_NO_GPU = ("cpu", "null")


def staff_for(plan: Plan) -> Staff | None:
    """Workers for the evaluators that a plan names; none where it names none.

    Raises:
        UsageError: One is not there, is of another version, or judges on another device.
    """
    if not plan.evaluators:
        return None
    backend = plan.run_config.backend
    devices: dict[str, Device] = {}
    for where in plan.evaluators:
        # A cluster's device is known when actors hold it, and they would keep it from the worker.
        if not is_cluster(where) and (place := elsewhere(where, backend)):
            devices[where] = place.device
    names = {each.name for each in devices.values()}
    if len(names) > 1:
        said = ", ".join(f"{where} on {device.name!r}" for where, device in devices.items())
        raise UsageError(f"timings on different devices do not compare: {said}")
    kinds = {each.kind for each in devices.values()} or {backend}
    return Staff(
        modules=tuple((WORKER, where, backend) for where in plan.evaluators),
        gpu=not kinds & set(_NO_GPU),
    )
