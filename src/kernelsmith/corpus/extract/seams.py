"""Parts of frameworks that have a plain stand-in, each written down here with what it stands for.

A stand-in does what the original does on the one path that a lone module takes: a model's base
class is a module, a registry of activations is a dict, a choice of attention kernels is the plain
one. What decides about numbers is never stood in for.
"""

from dataclasses import dataclass

from kernelsmith.corpus.extract import einops_text


@dataclass(frozen=True, slots=True)
class StandIn:
    """Text, the other stand-ins it needs, and imports."""

    text: str
    needs: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()


PACKAGES = {"einops", "lightning", "pytorch_lightning", "lightning_utilities", "packaging"}
"""Packages that are never read: all that is used of them is here."""

_ACTIVATIONS = """\
class QuickGELU(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)


class ReLUSquared(nn.Module):
    def forward(self, x):
        return torch.square(F.relu(x))


_ACTIVATIONS = {
    "gelu": nn.GELU, "gelu_python": nn.GELU, "relu": nn.ReLU, "relu6": nn.ReLU6,
    "silu": nn.SiLU, "swish": nn.SiLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh, "mish": nn.Mish,
    "leaky_relu": nn.LeakyReLU, "linear": nn.Identity, "prelu": nn.PReLU, "elu": nn.ELU,
    "gelu_new": lambda: nn.GELU(approximate="tanh"), "quick_gelu": QuickGELU,
    "gelu_fast": lambda: nn.GELU(approximate="tanh"), "relu2": ReLUSquared,
    "gelu_pytorch_tanh": lambda: nn.GELU(approximate="tanh"), "softplus": nn.Softplus,
    "gelu_accurate": lambda: nn.GELU(approximate="tanh"), "hardtanh": nn.Hardtanh,
}
"""
_ACT2FN = """\
class _ActivationTable:
    def __getitem__(self, name):
        return _ACTIVATIONS[name]()

    def __contains__(self, name):
        return name in _ACTIVATIONS


ACT2FN = _ActivationTable()
"""
_MODEL = """\
class PreTrainedModel(nn.Module):
    def __init__(self, config, *args, **kwargs):
        super().__init__()
        self.config = config

    @property
    def device(self):
        return next(self.parameters()).device

    @property
    def dtype(self):
        return next(p.dtype for p in self.parameters() if p.is_floating_point())

    def post_init(self):
        pass

    init_weights = post_init
"""
_ATTENTION = """\
class _PlainAttention:
    def get_interface(self, name, default):
        return default


ALL_ATTENTION_FUNCTIONS = _PlainAttention()
"""
_REGISTER = """\
def register_to_config(init):
    @functools.wraps(init)
    def constructor(self, *args, **kwargs):
        bound = inspect.signature(init).bind(self, *args, **kwargs)
        bound.apply_defaults()
        values = dict(list(bound.arguments.items())[1:])
        self.__dict__["config"] = types.SimpleNamespace(**values)
        init(self, *args, **kwargs)

    return constructor
"""
_PLAIN_MODULE = "class {0}(nn.Module):\n    pass\n"
_MIXIN = "class {0}:\n    pass\n"
_BASE_MODULE = """\
class BaseModule(nn.Module):
    def __init__(self, init_cfg=None):
        super().__init__()
        self.init_cfg = init_cfg

    def init_weights(self):
        pass
"""
_CONTAINER = """\
class {0}(BaseModule, nn.{0}):
    def __init__(self, *args, init_cfg=None):
        BaseModule.__init__(self, init_cfg)
        nn.{0}.__init__(self, *args)
"""
_BUILDERS = """\
_LAYERS = {
    "Conv1d": nn.Conv1d, "Conv2d": nn.Conv2d, "Conv3d": nn.Conv3d, "Conv": nn.Conv2d,
    "BN": nn.BatchNorm2d, "BN1d": nn.BatchNorm1d, "BN2d": nn.BatchNorm2d, "BN3d": nn.BatchNorm3d,
    "SyncBN": nn.BatchNorm2d, "GN": nn.GroupNorm, "LN": nn.LayerNorm, "IN": nn.InstanceNorm2d,
    "IN1d": nn.InstanceNorm1d, "IN2d": nn.InstanceNorm2d, "IN3d": nn.InstanceNorm3d,
    "ReLU": nn.ReLU, "ReLU6": nn.ReLU6, "LeakyReLU": nn.LeakyReLU, "PReLU": nn.PReLU,
    "GELU": nn.GELU, "SiLU": nn.SiLU, "Swish": nn.SiLU, "Sigmoid": nn.Sigmoid, "Tanh": nn.Tanh,
    "ELU": nn.ELU, "HSwish": nn.Hardswish, "Hardswish": nn.Hardswish, "HSigmoid": nn.Hardsigmoid,
    "Mish": nn.Mish, "Dropout": nn.Dropout, "zero": nn.ZeroPad2d, "reflect": nn.ReflectionPad2d,
    "replicate": nn.ReplicationPad2d,
}


def _built(cfg, default, *args, **kwargs):
    options = dict(cfg or {"type": default})
    kind = options.pop("type")
    kind = _LAYERS[kind] if isinstance(kind, str) else kind
    options.pop("requires_grad", None)
    if kind is nn.GroupNorm:
        return kind(options.pop("num_groups"), *args, **options, **kwargs)
    return kind(*args, **options, **kwargs)


def build_conv_layer(cfg, *args, **kwargs):
    return _built(cfg, "Conv2d", *args, **kwargs)


def build_norm_layer(cfg, num_features, postfix=""):
    options = dict(cfg)
    short = {"GN": "gn", "LN": "ln"}.get(options["type"], options["type"].lower()[:2])
    return f"{short}{postfix}", _built(options, "BN", num_features)


def build_activation_layer(cfg):
    options = dict(cfg)
    return _built(options, "ReLU")


def build_padding_layer(cfg, *args, **kwargs):
    return _built(cfg, "zero", *args, **kwargs)


def build_dropout(cfg, default_args=None):
    options = dict(cfg)
    options.pop("type", None)
    return nn.Dropout(options.get("drop_prob", options.get("p", 0.0)))
"""
_REGISTRY = """\
class _Registry:
    def build(self, cfg, *args, default_args=None, **kwargs):
        return _built(cfg, "Conv2d", *args, **{**(default_args or {}), **kwargs})

    def get(self, name):
        return _LAYERS[name]


MODELS = _Registry()
"""
_NORMS = """\
_BatchNorm = nn.modules.batchnorm._BatchNorm
_InstanceNorm = nn.modules.instancenorm._InstanceNorm
SyncBatchNorm = nn.SyncBatchNorm
"""
_LIGHTNING = """\
class LightningModule(nn.Module):
    def save_hyperparameters(self, *args, **kwargs):
        pass

    def log(self, *args, **kwargs):
        pass
"""
_VERSION = """\
class version:
    @staticmethod
    def parse(text):
        return tuple(int(n) for n in re.findall(r"\\d+", str(text).partition("+")[0])[:3])

    Version = parse


Version = parse = version.parse
"""
_NUMPY = {
    "pi": "math.pi", "e": "math.e", "inf": "math.inf", "nan": "math.nan", "sqrt": "math.sqrt",
    "log": "math.log", "log2": "math.log2", "log10": "math.log10", "exp": "math.exp",
    "ceil": "math.ceil", "floor": "math.floor", "prod": "math.prod", "sin": "math.sin",
    "cos": "math.cos", "power": "pow", "abs": "abs", "round": "round", "maximum": "max",
    "minimum": "min", "tanh": "math.tanh", "arange": "range",
    "Inf": "math.inf", "newaxis": "None", "float32": "torch.float32", "int64": "torch.int64",
}  # fmt: skip
NUMPY = _NUMPY
"""What of numpy has a plain counterpart for numbers; everything else of it is missing."""

_IMPORTS = ("import torch", "from torch import nn", "import torch.nn.functional as F")
_NN = ("from torch import nn",)

SOURCES: dict[str, StandIn] = {
    "rearrange": StandIn(einops_text.REARRANGE, (), ("import math", "import re", "import torch")),
    "repeat": StandIn(einops_text.REPEAT, ("rearrange",)),
    "reduce": StandIn(einops_text.REDUCE, ("rearrange",)),
    "einsum": StandIn(einops_text.EINSUM, (), ("import re", "import torch")),
    "Rearrange": StandIn(einops_text.LAYER, ("rearrange",), _NN),
    "Reduce": StandIn(einops_text.REDUCE_LAYER, ("reduce",), _NN),
    "pack": StandIn(einops_text.PACK, (), ("import math", "import torch")),
    "unpack": StandIn(einops_text.UNPACK, (), ("import math", "import torch")),
    "_ACTIVATIONS": StandIn(_ACTIVATIONS, (), _IMPORTS),
    "ACT2FN": StandIn(_ACT2FN, ("_ACTIVATIONS",)),
    "ACT2CLS": StandIn("ACT2CLS = _ACTIVATIONS\n", ("_ACTIVATIONS",)),
    "PreTrainedModel": StandIn(_MODEL, (), _NN),
    "ALL_ATTENTION_FUNCTIONS": StandIn(_ATTENTION),
    "register_to_config": StandIn(
        _REGISTER, (), ("import functools", "import inspect", "import types")
    ),
    "BaseModule": StandIn(_BASE_MODULE, (), _NN),
    "Sequential": StandIn(_CONTAINER.format("Sequential"), ("BaseModule",), _NN),
    "ModuleList": StandIn(_CONTAINER.format("ModuleList"), ("BaseModule",), _NN),
    "_LAYERS": StandIn(_BUILDERS, (), _NN),
    **{name: StandIn("", ("_LAYERS",)) for name in (
        "build_conv_layer", "build_norm_layer", "build_activation_layer", "build_padding_layer",
        "build_dropout")},
    **{name: StandIn(_PLAIN_MODULE.format(name), (), _NN) for name in (
        "GradientCheckpointingLayer", "ModelMixin")},
    "LightningModule": StandIn(_LIGHTNING, (), _NN),
    "MODELS": StandIn(_REGISTRY, ("_LAYERS",)),
    "_norms": StandIn(_NORMS, (), _NN),
    **{name: StandIn("", ("_norms",)) for name in ("_BatchNorm", "_InstanceNorm", "SyncBatchNorm")},
    "version": StandIn(_VERSION, (), ("import re",)),
    **{name: StandIn("", ("version",)) for name in ("parse", "Version")},
    "print_log": StandIn("def print_log(*args, **kwargs):\n    pass\n"),
    **{name: StandIn(_MIXIN.format(name)) for name in (
        "GenerationMixin", "ConfigMixin", "PeftAdapterMixin", "FromOriginalModelMixin",
        "PushToHubMixin", "AttentionMixin", "CacheMixin", "UNet2DConditionLoadersMixin",
        "PyTorchModelHubMixin", "LightningDataModule", "FromSingleFileMixin", "ModelOutput",
        "BaseOutput", "EmbeddingAccessMixin", "ModuleUtilsMixin")},
}  # fmt: skip

_WHERE: dict[str, tuple[str, ...]] = {
    "transformers": (
        "ACT2FN", "ACT2CLS", "PreTrainedModel", "ALL_ATTENTION_FUNCTIONS", "GenerationMixin",
        "GradientCheckpointingLayer", "PeftAdapterMixin", "PushToHubMixin", "ModelOutput",
        "EmbeddingAccessMixin", "ModuleUtilsMixin",
    ),
    "diffusers": (
        "register_to_config", "ConfigMixin", "ModelMixin", "PeftAdapterMixin", "AttentionMixin",
        "FromOriginalModelMixin", "CacheMixin", "UNet2DConditionLoadersMixin", "BaseOutput",
        "FromSingleFileMixin",
    ),
    **dict.fromkeys(("mmengine", "mmpretrain", "mmdet", "mmseg", "mmaction", "mmpose"), (
        "BaseModule", "Sequential", "ModuleList", "MODELS", "_BatchNorm", "_InstanceNorm",
        "SyncBatchNorm", "print_log",
    )),
    "mmcv": (
        "build_conv_layer", "build_norm_layer", "build_activation_layer", "build_padding_layer",
        "build_dropout", "BaseModule", "Sequential", "ModuleList", "MODELS", "_BatchNorm",
        "_InstanceNorm", "SyncBatchNorm", "print_log",
    ),
    "huggingface_hub": ("PyTorchModelHubMixin",),
}  # fmt: skip

VALUES: tuple[tuple[str, str], ...] = (
    (r"is_torch_(greater|available|version).*|is_torch_available", "True"),
    (r"is_\w+_available|is_\w*(tracing|scripting|exporting|compiling|fx_proxy)\w*", "False"),
    (
        r"(HAS|has|HAVE|IS|_HAS|_has|USE)_\w*(FLASH|flash|xformers|XFORMERS|triton|TRITON|apex|APEX|"
        r"npu|NPU|xla|XLA|mamba|MAMBA|deepspeed|fused|FUSED|sparse|liger|causal_conv)\w*",
        "False",
    ),
    (r"is_(deepspeed|fsdp|fairscale|amp|quantized|torch_npu|npu|xla|mps|hpu|mlu)\w*", "False"),
)
"""Names of questions about the surroundings, with the answer on a plain machine."""


def stands_for(module: str, name: str) -> bool:
    """Whether a name in (or imported from) a module of a framework has a stand-in."""
    return name in _WHERE.get(module.partition(".")[0], ())
