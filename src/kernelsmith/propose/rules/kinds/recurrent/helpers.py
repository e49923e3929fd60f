"""Python that a candidate brings along: a recurrent layer as torch has it, over own steps."""

HEAD = '''\
def sequence(layer, x, state=None):
    """As the layer itself: all outputs and the last state; none where the kernel cannot do it."""
    if not isinstance(x, torch.Tensor):  # packed, and nothing for the kernel
        return layer(x, state)
    if type(layer) not in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        return None
    if layer._forward_hooks or layer._forward_pre_hooks:  # they may change it, or what it gives
        return None
    many = {"LSTM": 4, "GRU": 3}.get(layer.mode, 1)
    weights = [*layer.parameters()]
    if x.dim() != 3 or x.dtype not in %s or any(w.dtype is not x.dtype for w in weights):
        return None
    if layer.proj_size or x.numel() == 0 or (layer.training and layer.dropout > 0):
        return None
    x = x.transpose(0, 1) if layer.batch_first else x
    batch, size, lines = x.shape[1], layer.hidden_size, 2 if layer.bidirectional else 1
    first, cell = state if layer.mode == "LSTM" and state is not None else (state, None)
    shape = (layer.num_layers * lines, batch, size)
    first = x.new_zeros(shape) if first is None else first
    cell = first.new_zeros(shape) if cell is None else cell
    if first.shape != shape or cell.shape != shape or first.dtype is not x.dtype:
        return None
    if cell.dtype is not x.dtype or many * shape[0] * (len(x) + 1) * batch * size >= 2**31:
        return None
'''

TAIL = '''\
    out = x.transpose(0, 1) if layer.batch_first else x
    last, cells = torch.cat(lasts), torch.cat(cells)
    return out, ((last, cells) if layer.mode == "LSTM" else last)


def stacked(layer, name, rows):
    """One tensor of the parameters of this name, for these layers and directions."""
    ends = ("", "_reverse")[: 2 if layer.bidirectional else 1]
    found = [getattr(layer, f"{name}_l{row}{end}") for row in rows for end in ends]
    return torch.stack(found) if len(found) > 1 else found[0][None]
'''

LAYERS = """\
    lasts, cells = [], []
    for row in range(layer.num_layers):
        part = slice(row * lines, (row + 1) * lines)
        inward, across = stacked(layer, "weight_ih", [row]), stacked(layer, "weight_hh", [row])
        near = stacked(layer, "bias_ih", [row]) if layer.bias else [None] * lines
        far = stacked(layer, "bias_hh", [row]) if layer.bias else x.new_zeros(lines, many * size)
        ahead = [torch.nn.functional.linear(x, w, b) for w, b in zip(inward, near)]
        ahead = torch.stack(ahead) if lines > 1 else ahead[0][None]
        held, cell_ = steps(layer.mode, %s, ahead, across, far, first[part], cell[part])
        x = held[0, 1:] if lines == 1 else torch.cat((held[0, 1:], held[1, 1:].flip(0)), dim=-1)
        lasts.append(held[:, -1])
        cells.append(cell_)
"""

WRITTEN = '''\


def written(mode, nonlinear, ahead, weight, bias, first, cell, times):
    """A loop over steps that was written out: the last states, and the state after each step."""
    many = {"LSTM": 4, "GRU": 3}.get(mode, 1)
    if not isinstance(first, torch.Tensor) or not isinstance(cell, torch.Tensor):
        return None
    if ahead.dim() != 3 or first.dim() != 2 or cell.shape != first.shape or ahead.numel() == 0:
        return None
    batch, size = first.shape
    if ahead.shape != (times, batch, many * size) or weight.shape != (many * size, size):
        return None
    if ahead.dtype not in %s or many * (times + 1) * batch * size >= 2**31:
        return None
    if any(x.dtype is not ahead.dtype for x in (weight, first, cell)):
        return None
    far = first.new_zeros(1, many * size) if bias is None else bias[None]
    held, last = steps(mode, nonlinear, ahead.contiguous()[None], weight.contiguous()[None],
                       far.contiguous(), first[None], cell[None])
    return held[0, -1], last[0], held[0, 1:]
'''

WAVE = """\
    nonlinear = getattr(layer, "nonlinearity", "tanh")
    if lines == 1 and layer.num_layers > 1:
        # One wave through all layers: layer 1 is at step 4 while layer 0 is at step 5.
        rows = range(layer.num_layers)
        inward = stacked(layer, "weight_ih", rows[1:])
        across = stacked(layer, "weight_hh", rows)
        none = x.new_zeros(layer.num_layers, many * size)
        near = stacked(layer, "bias_ih", rows) if layer.bias else none
        far = stacked(layer, "bias_hh", rows) if layer.bias else none
        ahead = torch.nn.functional.linear(x, layer.weight_ih_l0, near[0] if layer.bias else None)
        held, cell_ = steps(layer.mode, nonlinear, ahead[None], across, far, first, cell,
                            inward, near)
        x, lasts, cells = held[-1, 1:], [held[:, -1]], [cell_]
    else:
"""
