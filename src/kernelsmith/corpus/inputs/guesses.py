"""First guesses by name and annotation: what to construct with, and what kind of input to hand in.

All guesses are expressions, the likeliest first; what they are good for only a run can tell.
"""

import re

DIM, HEADS, VOCABULARY = "64", "4", "1000"

_INIT: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"device|dtype|init_cfg|generator|name|prefix|process_group|tp_group", ("None",)),
    (r".*(drop|droprate|p_drop).*", ("0.0",)),
    (r".*(eps|epsilon)$|eps.*", ("1e-05",)),
    (r"momentum|decay|ema_decay|beta", ("0.1",)),
    (r".*vocab.*|num_embeddings|n_token.*|num_tokens|ntoken|.*_idim|odim|num_items|n_items|num_users",
     (VOCABULARY, "64")),
    (r"kernel|kernel_?sizes?|ksize|ks|k_size|window|win|conv_kernel.*", ("3", "(3, 3)", "[3, 3]")),
    (r"kernel_size_list|kernels", ("[3, 3]", "[1, 2]")),
    (r".*(dilations|dilation_\w*s|dilations?_list|atrous_\w*|dilation_?rates?)",
     ("[1, 2]", "(1, 2)", "1", "2")),
    (r"strides?", ("1", "[1, 1]", "2")),
    (r"padding|pad", ("1", "0", "'same'")),
    (r"dilation|groups?|num_groups|n_groups", ("1", "4", "2")),
    (r"(upscale|scale|upsample|downsample)_?(factor|rate|scale)?s?|up_?factor|r",
     ("2", "1.0", "[2, 2]")),
    (r"(num_|n_?)?(attention_|attn_|kv_|key_value_|q_|query_)?heads?|n_?heads?|nhead|num_kv_heads|h",
     (HEADS, "8", "2", "1")),
    (r"(dim_|d_|size_per_|attention_)?head_?(dim|size|channels)?|dim_head|d_k|d_v|d_head|head_dims?|key_dim",
     ("16", "64", "32")),
    (r"(?!.*(dim|size|channels|per|drop|bias|layer|modules|list)).*(heads|_n_?head)",
     (HEADS, "2", "1")),
    (r"layer_?(idx|id|index|number|i)|idx|index|block_idx|i|stage|layer_num|level", ("0",)),
    (r"(num_|n_)?(hidden_|encoder_|decoder_)?(layers?|blocks|depth|repeats|stages|levels)|depth|n|nb|num",
     ("2", "[2, 2]", "[1, 1, 1, 1]")),
    (r"depths|layers|blocks|num_blocks|stage_depths", ("[1, 1, 1, 1]", "[1, 1]", "2")),
    (r"dims|channels_list|embed_dims|in_channels_list|widths|hidden_dims|num_features_list|enc_dims",
     ("[32, 64]", "[32, 64, 128, 256]", DIM)),
    (r"(num_|n_)?(classes|labels|class|cls)|nb_classes|nclass|n_classes", ("10",)),
    (r"num_experts|n_experts|experts|num_local_experts|n_routed_experts", ("4",)),
    (r"top_?k|k|num_selected.*|num_experts_per_tok|n_neighbors", ("2", "4")),
    (r"(image|img|input|feature|feat|grid)_?(size|res|resolution|shape)|resolution|img_dim|image_dim",
     ("32", "(32, 32)", "64", "(16, 16)")),
    (r"window_size|win_size|patch_size|patch|block_size|shift_size", ("4", "(4, 4)", "8", "2")),
    (r"(max_|num_|n_)?(seq_?_?len|sequence_length|length|positions?|len|context_length|seq)|"
     r"max_len|max_position.*|num_patches|n_patches|num_frames|frames|block_len|input_len|seq_length",
     ("16", "64")),
    (r"pred_len|horizon|h|output_len|prediction_length|forecast_.*", ("8", "16")),
    (r"(in_channels?|input_channels?|in_ch|in_chans|in_chs|inp|c_in|n_channels|num_channels|chin|cin)",
     (DIM, "3", "1", "4", "[32, 64]")),
    (r"(mlp|expand|expansion|ffn|reduction|squeeze|se|hidden|compress|growth|widen)_?"
     r"(ratio|factor|mult|rate|scale)?|ratio|factor|mult|t", ("4", "2", "0.5")),
    (r"(mlp|ff|ffn|intermediate|inner|feedforward|hidden)_?(dim|size|channels|features|units)?",
     ("128", DIM)),
    (r"(rank|lora_rank|r|bottleneck|adapter_size|reduced?_dim)", ("8",)),
    (r".*(temperature|temp|scale|scaling|alpha|gamma|lambda|weight|coef|lr|margin|threshold|thresh"
     r"|beta|sigma|tau|std|slope|init_value|init_values|value|prob|rate|mean)$",
     ("1.0", "0.5", "0.1")),
    (r"(use|with|is|has|add|do|enable|return|apply|learn|causal|bias|qkv_bias|inplace|affine|"
     r"shortcut|residual|bidirectional|pre|post|normalize|training|batch_first|elementwise).*|bn|res",
     ("True", "False", "None")),
    (r"(act|activation|nonlinearity|non_linearity|act_fn|act_func|activation_fn|hidden_act|act_type"
     r"|act_layer|activation_layer|actv|non_lin|activ|activation_function|activate)",
     ("'relu'", "nn.ReLU", "nn.ReLU()", "'gelu'", "torch.nn.functional.relu")),
    (r"(norm|norm_layer|norm_type|normalization|norm_fn|layer_norm|norm_class|norm_module|BatchNorm)",
     ("nn.LayerNorm", "nn.BatchNorm2d", "'layernorm'", "'bn'", "'batch'", "nn.Identity()",
      "'layer'")),
    (r"(conv|conv_layer|conv_class|conv_block|block|layer|cell|unit|linear_layer|linear|cls)",
     ("nn.Conv2d", "nn.Linear", "nn.Identity()", "nn.Linear(64, 64)")),
    (r"norm_cfg", ("dict(type='BN')", "dict(type='LN')")),
    (r"act_cfg", ("dict(type='ReLU')",)),
    (r"conv_cfg", ("None",)),
    (r"(fn|func|function|module|mod|net|model|layer|sublayer|inner|submodule|body|m|f|encoder"
     r"|decoder|backbone|base|main|wrapped|head|proj|mlp|attn|attention|mixer|norm_module|branch"
     r"|transform|embed|embedding|network|student|teacher|self_attn|feed_forward|core|trunk"
     r"|estimator|denoiser|unet|to_.*|.*_layer|.*_module|.*_net|.*_fn|.*_proj)",
     ("nn.Identity()", "nn.Linear(64, 64)", "nn.Conv2d(64, 64, 3, padding=1)", "lambda x: x")),
    (r"(modules|layers|fns|blocks|nets|heads|branches|children|models|encoders|transforms)",
     ("[nn.Identity(), nn.Identity()]", "[nn.Linear(64, 64), nn.Linear(64, 64)]", "2")),
    (r"(mode|type|kind|method|pool(ing)?(_type|_mode)?|reduction|pad(ding)?_mode|padding_type|"
     r"interpolation|upsample_mode|aggr|variant|norm_type|attn_type|position_embedding_type)",
     ("'mean'", "'bilinear'", "'zeros'", "'max'", "'sum'", "'avg'", "'none'")),
    (r"(dim|axis)s?_?$|axis", (DIM, "-1", "1")),
    (r"spatial_dims|spatial_dimensions|ndim|n_dims|rank_dim|nd", ("2", "3")),
    (r"(output_size|out_size|size|target_size|shape|spatial_.*)",
     ("8", "(8, 8)", DIM, "(64,)")),
    (r"normalized_shape|num_features|nfeat|num_parameters", (DIM, "(64,)")),
    (r".*(dim|dims|size|channels?|features?|feats?|planes|width|units|hidden|embed|embedding|chs?"
     r"|chan|nf|nc|d|d_model|e|c|ch|n_embd|emb|filters?|feat|nhid|ninp|odim|idim|adim|c1|c2|inc|ouc"
     r"|outc|ni|nin|nout|mid|n_in|n_out|n_feat.*|state|latent.*)\d?$", (DIM, "(64, 64)",
                                                                       "[32, 64]")),
)  # fmt: skip
_BY_TYPE: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"^(Optional|None|.*\| None)", ("None",)),
    (r"(List|Sequence|list|Iterable)\[(int|float).*", ("[32, 64]", "[2, 2]", "[32, 64, 128, 256]")),
    (r"(List|Sequence|list|ModuleList|Iterable)\[.*(Module)", ("[nn.Identity(), nn.Identity()]",)),
    (r"(Tuple|tuple)\[int, int, int\]", ("(8, 8, 8)", "(3, 3, 3)")),
    (r"(Tuple|tuple)\[int", ("(8, 8)", "(3, 3)", "(32, 32)")),
    (r"(Tuple|tuple)\[float", ("(0.5, 1.0)",)),
    (r"bool", ("True", "False")),
    (r"float", ("1.0", "0.1")),
    (r"str", ("'relu'", "'mean'", "'none'", "'bn'", "'layer'")),
    (r".*(type|Type)\[.*(Module)", ("nn.Identity", "nn.LayerNorm", "nn.ReLU", "nn.Conv2d")),
    (r".*Callable", ("nn.ReLU", "nn.Identity()", "torch.nn.functional.relu", "lambda x: x")),
    (r".*(Module|Layer)", ("nn.Identity()", "nn.Linear(64, 64)",
                            "nn.Conv2d(64, 64, 3, padding=1)")),
    (r".*Tensor", ("torch.ones(64)", "torch.eye(64)", "torch.ones(3, 3)")),
    (r"(dict|Dict|Mapping).*", ("{}",)),
    (r"int", (DIM, "4", "2", "1", "3", "16")),
)  # fmt: skip
_ANY = (DIM, "2", "1.0", "None", "(8, 8)", "'relu'", "[32, 64]", "nn.Identity()", "True", "4",
        "nn.ReLU", "lambda x: x", "{}")  # fmt: skip
_SIZE = re.compile(r"(?!(use|with|is|has|keep|return|learn|learnable|add|do|enable|apply|share)_)"
                   r".*(size|shape|dim|features|channels)", re.IGNORECASE)  # fmt: skip
"""Names of sizes: ``True`` would pass for 1 there."""
_TYPED = {"int": r"-?\d+$", "float": r"-?[\d.e-]+$", "bool": r"True|False", "str": r"'.*'$"}


def init_guesses(name: str, annotation: str = "") -> list[str]:
    """Expressions for one constructor argument, the likeliest first, each once."""
    found: list[str] = []
    plain = annotation.strip().strip("'\"")
    size = "bool" not in plain and _SIZE.match(name) is not None
    for pattern, values in _INIT:
        if re.fullmatch(pattern, name, re.IGNORECASE) and not (size and "True" in values):
            found += values
            break
    fits = _TYPED.get(plain)
    if fits:
        found = [each for each in found if re.match(fits, each)]
    for pattern, values in _BY_TYPE:
        if plain and re.match(pattern, plain):
            found += values
            break
    every = dict.fromkeys([*found, *_ANY])
    return [each for each in every if not (size and each in ("True", "False"))]


CONFIG_VALUES = {
    "_attn_implementation": "'eager'", "attn_implementation": "'eager'",
    "output_attentions": "False",
    "output_hidden_states": "False", "return_dict": "False", "use_return_dict": "False",
    "use_cache": "False", "chunk_size_feed_forward": "0", "is_decoder": "False",
    "add_cross_attention": "False", "is_encoder_decoder": "False", "pad_token_id": "0",
    "initializer_range": "0.02", "gradient_checkpointing": "False", "torchscript": "False",
    "pruned_heads": "{}", "tie_word_embeddings": "False", "layer_types": "['full_attention'] * 4",
    "sliding_window": "None", "rope_scaling": "None", "problem_type": "None", "num_labels": "10",
    "rope_parameters": "{'rope_type': 'default', 'rope_theta': 10000.0}", "rope_theta": "10000.0",
    "hidden_act": "'gelu'", "activation_function": "'gelu'", "bos_token_id": "1",
    "eos_token_id": "2", "position_embedding_type": "'absolute'", "dtype": "None",
    "partial_rotary_factor": "1.0", "mlp_bias": "False", "attention_bias": "False",
}  # fmt: skip
"""What the base class of configs holds where a config class does not say."""


def config_guess(name: str, known: dict[str, str]) -> str:
    """One attribute of a config that nothing gives a value for."""
    if name in CONFIG_VALUES:
        return CONFIG_VALUES[name]
    if name == "head_dim" and {"hidden_size", "num_attention_heads"} <= set(known):
        return f"{known['hidden_size']} // {known['num_attention_heads']}"
    return init_guesses(name)[0]


_SIZES = re.compile(
    r"(hidden|inter|ffn|d_|dim|width|embd|embed|rank|channels|proj|inner|size|mlp)", re.IGNORECASE
)
_NOT_SIZES = re.compile(
    r"(vocab|patch|image|kernel|head_?dim|window|posit|type|num_|n_group|conv|stride|chunk|length"
    r"|max_|layers?$|block|temporal|spatial|token|len|pool|bucket|_act|state_size|qk_|v_head|codebook)",
    re.IGNORECASE,
)
_HEADS = re.compile(r"(heads?$|n_head|num_key_value|num_kv|_heads$)", re.IGNORECASE)
_SMALLEST = 8
_WIDTHS = ("hidden_size", "d_model", "n_embd", "embed_dim", "dim", "hidden_dim", "input_size",
           "in_channels", "attention_dim", "adim", "n_feat", "channels")  # fmt: skip


def completed(values: dict[str, str]) -> dict[str, str]:
    """Values that a config class works out for itself where they are left open."""
    found = dict(values)
    for name, text in values.items():
        if text != "None":
            continue
        heads = next((values[k] for k in ("num_attention_heads", "n_head", "num_heads")
                      if k in values), "")  # fmt: skip
        width = next((values[k] for k in ("hidden_size", "n_embd", "d_model") if k in values), "")
        if name in CONFIG_VALUES and CONFIG_VALUES[name] != "None":
            found[name] = CONFIG_VALUES[name]
        elif re.search(r"(key_value|kv)_heads$", name) and heads:
            found[name] = heads
        elif name == "head_dim" and heads.isdigit() and width.isdigit():
            found[name] = str(int(width) // max(1, int(heads)))
        elif re.search(r"intermediate|n_inner|ffn_dim", name) and width.isdigit():
            found[name] = str(4 * int(width))
    return found


def shrunk(values: dict[str, str], target: int = 256) -> dict[str, str]:
    """A config of the same shape at a fraction of the size: widths and heads by one factor."""
    numbers = {k: int(v) for k, v in values.items() if re.fullmatch(r"\d+", v)}
    widths = [numbers[k] for k in ("hidden_size", "d_model", "n_embd", "dim", "embed_dim",
                                   "hidden_dim", "embedding_size") if k in numbers]  # fmt: skip
    factor = 1
    while widths and max(widths) // factor > target:
        factor *= 2
    found = dict(values)
    for name, number in numbers.items():
        if _HEADS.search(name):
            if number % factor == 0 or number < factor:
                found[name] = str(max(1, number // factor))
        elif _SIZES.search(name) and not _NOT_SIZES.search(name):
            if number % factor == 0 and number // factor >= _SMALLEST:
                found[name] = str(number // factor)
        elif "vocab" in name or "max_position" in name:
            found[name] = str(min(number, 512))
        elif re.search(r"(num|n)_?\w*layers?$|^depth$", name):
            found[name] = str(min(number, 2))
        elif re.search(r"experts$", name):
            found[name] = str(min(number, 8))
    return fewer_heads(found)


def fewer_heads(values: dict[str, str]) -> dict[str, str]:
    """The same arguments with no head narrower than eight, where one width says how wide."""
    numbers = {k: int(v) for k, v in values.items() if re.fullmatch(r"\d+", v)}
    width = next((numbers[k] for k in _WIDTHS if k in numbers), 0)
    found = dict(values)
    for name, heads in numbers.items():
        if width >= _SMALLEST and _HEADS.search(name) and heads * _SMALLEST > width:
            fits = [h for h in range(1, heads) if h * _SMALLEST <= width and not heads % h]
            found[name] = str(max([h for h in fits if not width % h] or [1]))
    return found


_KINDS: tuple[tuple[str, str], ...] = (
    (r"input_ids|token_ids|ids|tokens?|token_type_ids|position_ids|positions|seq|text|words|indices"
     r"|index|idx|codes|labels?|targets?_ids|input_tokens|decoder_input_ids|src_tokens|item_seq"
     r"|char_ids|segment_ids|cache_position|.*_ids|.*_idx|.*_indices", "index"),
    (r"targets?|y_true|gt|ground_truth|y|true|ref|reference|target_.*", "like"),
    (r".*mask.*|.*pad(ding)?$|valid", "mask"),
    (r".*(lengths?|lens?|n_frames)$|ilens|olens|hlens", "lengths"),
    (r"timesteps?|t|time|sigmas?|noise_level|step|timestep|ts|log_snr|diffusion_step", "time"),
    (r"edge_index|edges|adj_t|edge", "edges"),
    (r"(h|H|height|w|W|width|h_out|w_out|hh|ww)", "side"),
    (r"(hw|hw_shape|x_size|input_resolution|spatial_shape|size|shape|resolution|input_size|out_size"
     r"|feat_size|grid_size|image_size|patch_resolution)", "sides"),
    (r"position_embeddings|rotary_pos_emb|cos_sin|rotary_emb|image_rotary_emb", "rotary"),
    (r"(feats|features|inputs_list|xs|x_list|feature_list|pyramid|hidden_states_list|multi_.*"
     r"|feature_maps|encoder_features|skips?|skip_connections|stage_.*)", "list"),
    (r"(return|output|use|is|need|training|inverse|reverse|causal|with)_?.*", "flag"),
    (r"(num|n|k|max|min|top)_.*|k|dim|num|batch_size|bsz", "number"),
    (r"adj(acency)?(_matrix)?|attn_bias|.*_bias|graph", "square"),
    (r"(cond|conditioning|temb|time_emb|emb|c|style|w|vec|g|speaker|spk.*|global_.*"
     r"|.*_emb)", "vector"),
)  # fmt: skip


def input_kind(name: str, annotation: str = "") -> str:
    """What sort of thing an argument of ``forward`` is; ``tensor`` where nothing says otherwise."""
    plain = annotation.strip().strip("'\"")
    if re.match(r"(Optional\[)?(bool)", plain):
        return "flag"
    if re.match(r"(Optional\[)?int\b", plain):
        return "side" if re.fullmatch(r"[hwHW]|height|width", name) else "number"
    if re.match(r"(Optional\[)?float\b", plain):
        return "float"
    if re.match(r"(Optional\[)?str\b", plain):
        return "text"
    if re.match(r"(List|list|Sequence|Tuple|tuple)\[.*Tensor", plain) and "rotary" not in name:
        return "rotary" if name == "position_embeddings" else "list"
    for pattern, kind in _KINDS:
        if re.fullmatch(pattern, name):
            return kind
    return "tensor"
