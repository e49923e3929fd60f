"""Functional families: one word for what a task computes, the same for every suite."""

import re

FAMILIES = (
    "elementwise", "activation", "reduction", "scan", "normalisation", "attention", "loss",
    "matmul", "batched matmul", "convolution", "transposed convolution", "pooling", "indexing",
    "sorting", "routing", "quantisation", "recurrence", "optimiser", "image", "sparse",
    "linear algebra", "spectral", "random", "model", "other",
)  # fmt: skip
"""The twenty that the built-in suite covers, then what other suites have besides."""

_RULES: tuple[tuple[str, str], ...] = (
    ("optimiser", r"adamw?|sgd|rms_?prop|lion|adagrad"),
    ("attention", r"attention|attn|softmax(?!.*(loss|entropy))|mla|gqa|flash|sdpa|mqa"),
    ("loss", r"loss|entropy|kl_?div|mse|nll|hinge|(^|_)ce($|_)|huber"),
    ("routing", r"moe|rout(e|ing)|expert|gating"),
    ("quantisation", r"quant|int8|int4|w8a8|w4a16|fp4|fp8|f8|dequant"),
    ("recurrence", r"lstm|gru|rnn|recurren|mamba|ssm|retention|rwkv|hgrn|delta_rule"),
    ("transposed convolution", r"conv_?transpose|transposed_conv|conv_depthwise|depthwise"),
    ("convolution", r"conv"),
    ("pooling", r"pool"),
    ("batched matmul", r"bmm|batched?_mat|baddbmm|batch_mat|vecmat"),
    ("matmul", r"mat_?mul|gemm|(^|_)mm($|_)|linear|addmm|(^|_)mv($|_)|matrix_vector|matrix_mult"
               r"|tensordot|einsum|_dot|sgmv|bgmv|lora|ffn|ffw|mlp|swiglu"),
    ("linear algebra", r"solve|cholesky|svd|eig|(^|_)qr|(^|_)lu($|_)|ldl|invers|invert|(^|_)det"
                       r"|linalg|low_rank|spectral_norm|triangular|householder"),
    ("spectral", r"fft|stft"),
    ("normalisation", r"norm|rms"),
    ("scan", r"cum(sum|prod|max|min)|scan|cumul"),
    ("sorting", r"sort|top_?k|kthvalue|unique|searchsorted|bucketize|top_p|median"),
    ("indexing", r"index|gather|scatter|embedding|select|where|take|mask|copy|permute|transpose"
                 r"|cat|stack|split|repeat|tile|roll|flip|pad|nonzero|slice|cache|expand|one_hot"),
    ("image", r"interpolate|resiz|upsample|grid_sampl|pixel_shuffle|affine|bilinear|bicubic|iou"),
    ("sparse", r"sparse|graph|csr"),
    ("random", r"rand|dropout|multinomial|bernoulli|sampling"),
    ("reduction", r"sum|mean|(^|_)max|(^|_)min|argm|reduc|std|var($|_)|prod|norm|amax|amin|any"
                  r"|(^|_)all|count|dist|cosine_sim|trace"),
    ("activation", r"relu|elu|gelu|sigmoid|tanh|swish|silu|mish|softplus|softsign|hard|activation"
                   r"|glu|threshold|shrink"),
    ("elementwise", r"add|mul|sub|div|exp|log|sqrt|pow|abs|sin|cos|erf|sign|floor|ceil|round"
                    r"|trunc|clamp|bitwise|logical|eq|(^|_)(g|l|n)[te]($|_)|rope|rotary"
                    r"|reciprocal|gamma|bessel|airy|zeta|polynomial|i0|rad2deg|neg|square|lerp"
                    r"|fmod|remainder|atan|hypot|isfinite|isnan|nan_to_num|where|logit"),
)  # fmt: skip


_LIGHT = {"indexing", "random", "reduction", "activation", "elementwise", "sparse", "sorting"}
"""What stands beside the work in names of fused tasks; only where nothing else is named."""


def family_of(name: str, category: str = "") -> str:
    """Guess from a task's name, then from its suite's category; ``other`` where neither says.

    Of several families in one name the first counts: ``Conv2d_ReLU_Softmax`` is a convolution.
    """
    for text in (name, category):
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])", "_", text).lower().replace(" ", "_")
        found = [
            (family in _LIGHT, family not in _LIGHT and match.start(), order, family)
            for order, (family, pattern) in enumerate(_RULES)
            if (match := re.search(pattern, words))
        ]
        if found:
            return min(found)[3]
    return "other"
