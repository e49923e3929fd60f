"""Mean and maximum of the nodes of every graph in a batch of graphs."""

import torch

FAMILY = "sparse"
DIFFICULTY = 2
ORIGIN = "GIN on ogbg-molhiv"

# GIN on ogbg-molhiv: 300 features, molecules of 25 atoms on average.


class Model(torch.nn.Module):
    def __init__(self, graphs):
        super().__init__()
        self.graphs = graphs

    def forward(self, graph, features):
        ones = torch.ones_like(graph, dtype=features.dtype)
        count = features.new_zeros(self.graphs).index_add(0, graph, ones)
        empty = features.new_zeros(self.graphs, features.shape[1])
        mean = empty.index_add(0, graph, features) / count[:, None]
        index = graph[:, None].expand_as(features)
        largest = empty.scatter_reduce(0, index, features, "amax", include_self=False)
        return torch.cat((mean, largest), dim=1)


def get_inputs(nodes=800, graphs=32, dim=300):
    some = torch.randint(0, graphs, (nodes - graphs,))
    graph = torch.cat((torch.arange(graphs), some)).sort().values
    return [graph, torch.randn(nodes, dim)]


def get_init_inputs(graphs=32):
    return [graphs]


def get_workloads():
    return [
        {
            "name": "ogbg-molhiv, 32 molecules",
            "inputs": {"nodes": 800, "graphs": 32, "dim": 300},
            "init": {"graphs": 32},
        },
        {
            "name": "qm9, 64 small molecules",
            "inputs": {"nodes": 1150, "graphs": 64, "dim": 64},
            "init": {"graphs": 64},
        },
        {
            "name": "gpu: ogbg-molhiv, 4096 molecules",
            "inputs": {"nodes": 104448, "graphs": 4096, "dim": 300},
            "init": {"graphs": 4096},
        },
        {
            "name": "odd sizes",
            "inputs": {"nodes": 211, "graphs": 9, "dim": 47},
            "init": {"graphs": 9},
            "held_out": True,
        },
    ]
