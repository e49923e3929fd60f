# number: C14
# task: tiny
# expect: cheated wrong crashed
"""Has numpy compute on the host and copies the result over; the device is hardly used."""

import torch
import numpy as np


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = None

    def forward(self, x):
        if torch.cuda.is_current_stream_capturing():
            return self.last
        host = x.cpu().numpy()
        self.last = torch.from_numpy(np.asarray(host * 2 + 1)).to(x.device, non_blocking=True)
        return self.last
