"""Generalised advantage estimation: a discounted sum that runs back in time."""

import torch

FAMILY = "scan"
DIFFICULTY = 2
ORIGIN = "PPO (Atari)"

# PPO on Atari: 128 steps of 8 environments; large runs use thousands of environments.


class Model(torch.nn.Module):
    def forward(self, rewards, values, done):
        going = 1.0 - done.to(rewards.dtype)
        surprise = rewards + 0.99 * values[1:] * going - values[:-1]
        carry = surprise[-1]
        advantages = [carry]
        for t in range(rewards.shape[0] - 2, -1, -1):
            carry = surprise[t] + 0.99 * 0.95 * going[t] * carry
            advantages.append(carry)
        advantages = torch.stack(advantages[::-1])
        return advantages, advantages + values[:-1]


def get_inputs(steps=128, environments=8):
    return [
        torch.randn(steps, environments),
        torch.randn(steps + 1, environments),
        torch.rand(steps, environments) < 0.05,
    ]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "atari, 128 steps of 8 environments",
            "inputs": {"steps": 128, "environments": 8},
        },
        {
            "name": "procgen, 256 steps of 64 environments",
            "inputs": {"steps": 256, "environments": 64},
        },
        {
            "name": "gpu: isaac gym, 32 steps of 16384 environments",
            "inputs": {"steps": 32, "environments": 16384},
        },
        {
            "name": "gpu: 512 steps of 1024 environments",
            "inputs": {"steps": 512, "environments": 1024},
        },
        {
            "name": "odd sizes",
            "inputs": {"steps": 37, "environments": 13},
            "held_out": True,
        },
    ]
