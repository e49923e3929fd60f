"""What makes kernels fast on any device."""

TIPS = (
    "Find out first what bounds the program: the roofline lines say how close the current one is "
    "to the device's bandwidth and arithmetic. Far below both means latency, launch overhead or "
    "idle cores.",
    "Most of these tasks are bound by memory traffic. Read every input once, write every output "
    "once, and keep what lies between in registers or on-chip memory: fuse the whole chain.",
    "Compute a reduction and what uses it in one pass over data that is still close; where a row "
    "does not fit, use an online form (running maximum with rescaled sum, running mean and M2).",
    "Simplify the algebra before the schedule: constants fold, scales merge, operations that "
    "cancel disappear, as long as the result stays right for all inputs and weights.",
    "Give every worker enough to do and every worker something: few huge pieces leave cores idle, "
    "many tiny ones cost more to start than to run.",
    "Choose by size at run time where workloads differ: one kernel for short rows, another for "
    "long ones, is a valid answer.",
    "Accumulate in float32 (or wider) whatever the inputs are: it costs little and keeps you "
    "right.",
)
