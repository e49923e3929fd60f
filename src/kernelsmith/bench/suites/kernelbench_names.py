"""KernelBench's problems by name: which level and number a row of a table is, if it is one of them.

Read at commit 423217d; what was called otherwise before its version 0.1 (at 7dd9cfa) is known, too.
"""

import re

_NAMES = {
    1: """
Square_matrix_multiplication_ Standard_matrix_multiplication_ Batched_matrix_multiplication
Matrix_vector_multiplication_ Matrix_scalar_multiplication Matmul_with_large_K_dimension_
Matmul_with_small_K_dimension_ Matmul_with_irregular_shapes_
Tall_skinny_matrix_multiplication_ 3D_tensor_matrix_multiplication
4D_tensor_matrix_multiplication Matmul_with_diagonal_matrices_ Matmul_for_symmetric_matrices
Matmul_for_upper_triangular_matrices Matmul_for_lower_triangular_matrices
Matmul_with_transposed_A Matmul_with_transposed_B Matmul_with_transposed_both ReLU LeakyReLU
Sigmoid Tanh Softmax LogSoftmax Swish GELU_ SELU_ HardSigmoid Softplus Softsign ELU HardTanh
BatchNorm InstanceNorm GroupNorm_ RMSNorm_ FrobeniusNorm_ L1Norm_ L2Norm_ LayerNorm
Max_Pooling_1D Max_Pooling_2D Max_Pooling_3D Average_Pooling_1D Average_Pooling_2D
Average_Pooling_3D Sum_reduction_over_a_dimension Mean_reduction_over_a_dimension
Max_reduction_over_a_dimension conv_standard_2D__square_input__square_kernel
Argmax_over_a_dimension Argmin_over_a_dimension Min_reduction_over_a_dimension
conv_standard_3D__square_input__square_kernel
conv_standard_2D__asymmetric_input__square_kernel
conv_standard_2D__asymmetric_input__asymmetric_kernel
conv_transposed_2D__square_input__square_kernel
conv_transposed_3D__asymmetric_input__asymmetric_kernel
conv_standard_3D__asymmetric_input__square_kernel
conv_standard_3D__square_input__asymmetric_kernel
conv_transposed_3D__square_input__square_kernel
conv_standard_2D__square_input__asymmetric_kernel
conv_standard_2D__square_input__square_kernel conv_transposed_1D
conv_transposed_2D__square_input__asymmetric_kernel
conv_standard_3D__asymmetric_input__asymmetric_kernel conv_standard_1D
conv_transposed_3D__square_input__asymmetric_kernel
conv_transposed_2D__asymmetric_input__asymmetric_kernel
conv_transposed_3D__asymmetric_input__square_kernel
conv_transposed_2D__asymmetric_input__square_kernel
conv_transposed_3D_asymmetric_input_asymmetric_kernel___strided_padded_grouped_
conv_transposed_3D_asymmetric_input_square_kernel__strided_padded__grouped
conv_transposed_1D_dilated
conv_transposed_2D_asymmetric_input_asymmetric_kernel_strided__grouped____padded____dilated__
conv_standard_1D_dilated_strided__
conv_transposed_3D_square_input_square_kernel___padded____dilated____strided__
conv_transposed_2D_asymmetric_input_asymmetric_kernel___padded__
conv_transposed_1D_asymmetric_input_square_kernel___padded____strided____dilated__
conv_standard_2D_square_input_asymmetric_kernel___dilated____padded__
conv_transposed_2D_asymmetric_input_square_kernel___dilated____padded____strided__
conv_depthwise_2D_square_input_square_kernel conv_depthwise_2D_square_input_asymmetric_kernel
conv_depthwise_2D_asymmetric_input_square_kernel
conv_depthwise_2D_asymmetric_input_asymmetric_kernel conv_depthwise_separable_2D
conv_pointwise_2D MinGPTNewGelu cumsum cumprod cumsum_reverse cumsum_exclusive masked_cumsum
MSELoss CrossEntropyLoss HuberLoss ScaledDotProductAttention KLDivLoss TripletMarginLoss
HingeLoss
    """,
    2: """
Conv2D_ReLU_BiasAdd ConvTranspose2d_BiasAdd_Clamp_Scaling_Clamp_Divide
ConvTranspose3d_Sum_LayerNorm_AvgPool_GELU Conv2d_Mish_Mish ConvTranspose2d_Subtract_Tanh
Conv3d_Softmax_MaxPool_MaxPool Conv3d_ReLU_LeakyReLU_GELU_Sigmoid_BiasAdd
Conv3d_Divide_Max_GlobalAvgPool_BiasAdd_Sum Matmul_Subtract_Multiply_ReLU
ConvTranspose2d_MaxPool_Hardtanh_Mean_Tanh ConvTranspose2d_BatchNorm_Tanh_MaxPool_GroupNorm
Gemm_Multiply_LeakyReLU ConvTranspose3d_Mean_Add_Softmax_Tanh_Scaling Gemm_Divide_Sum_Scaling
ConvTranspose3d_BatchNorm_Subtract ConvTranspose2d_Mish_Add_Hardtanh_Scaling
Conv2d_InstanceNorm_Divide Matmul_Sum_Max_AvgPool_LogSumExp_LogSumExp
ConvTranspose2d_GELU_GroupNorm ConvTranspose3d_Sum_ResidualAdd_Multiply_ResidualAdd
Conv2d_Add_Scale_Sigmoid_GroupNorm Matmul_Scale_ResidualAdd_Clamp_LogSumExp_Mish
Conv3d_GroupNorm_Mean Conv3d_Min_Softmax Conv2d_Min_Tanh_Tanh ConvTranspose3d_Add_HardSwish
Conv3d_HardSwish_GroupNorm_Mean BMM_InstanceNorm_Sum_ResidualAdd_Multiply Matmul_Mish_Mish
Gemm_GroupNorm_Hardtanh Conv2d_Min_Add_Multiply Conv2d_Scaling_Min Gemm_Scale_BatchNorm
ConvTranspose3d_LayerNorm_GELU_Scaling Conv2d_Subtract_HardSwish_MaxPool_Mish
ConvTranspose2d_Min_Sum_GELU_Add Matmul_Swish_Sum_GroupNorm
ConvTranspose3d_AvgPool_Clamp_Softmax_Multiply Gemm_Scale_BatchNorm Matmul_Scaling_ResidualAdd
Gemm_BatchNorm_GELU_ReLU ConvTranspose2d_GlobalAvgPool_BiasAdd_LogSumExp_Sum_Multiply
Conv3d_Max_LogSumExp_ReLU ConvTranspose2d_Multiply_GlobalAvgPool_GlobalAvgPool_Mean
Gemm_Sigmoid_LogSumExp Conv2d_Subtract_Tanh_Subtract_AvgPool Conv3d_Mish_Tanh
Conv3d_Scaling_Tanh_Multiply_Sigmoid ConvTranspose3d_Softmax_Sigmoid
ConvTranspose3d_Scaling_AvgPool_BiasAdd_Scaling
Gemm_Subtract_GlobalAvgPool_LogSumExp_GELU_ResidualAdd Conv2d_Activation_BatchNorm
Gemm_Scaling_Hardtanh_GELU Conv2d_Multiply_LeakyReLU_GELU Matmul_MaxPool_Sum_Scale
Matmul_Sigmoid_Sum Conv2d_ReLU_HardSwish ConvTranspose3d_LogSumExp_HardSwish_Subtract_Clamp
Matmul_Swish_Scaling ConvTranspose3d_Swish_GroupNorm_HardSwish ConvTranspose3d_ReLU_GroupNorm
Matmul_GroupNorm_LeakyReLU_Sum Gemm_ReLU_Divide Gemm_LogSumExp_LeakyReLU_LeakyReLU_GELU_GELU
Conv2d_AvgPool_Sigmoid_Sum Matmul_Dropout_Softmax Conv2d_GELU_GlobalAvgPool
Matmul_Min_Subtract Conv2d_HardSwish_ReLU Gemm_Sigmoid_Scaling_ResidualAdd
Conv2d_Divide_LeakyReLU ConvTranspose3d_BatchNorm_AvgPool_AvgPool Conv2d_BatchNorm_Scaling
ConvTranspose3d_LeakyReLU_Multiply_LeakyReLU_Max Gemm_GroupNorm_Min_BiasAdd Gemm_Add_ReLU
ConvTranspose3d_Scale_BatchNorm_GlobalAvgPool ConvTranspose3d_Max_Max_Sum
Conv3d_Multiply_InstanceNorm_Clamp_Multiply_Max Gemm_Max_Subtract_GELU
Gemm_Swish_Divide_Clamp_Tanh_Clamp Conv2d_Tanh_Scaling_BiasAdd_Max
Conv3d_GroupNorm_Min_Clamp_Dropout Gemm_BatchNorm_Scaling_Softmax
Conv2d_GroupNorm_Scale_MaxPool_Clamp Matmul_Divide_GELU Conv2d_Subtract_Subtract_Mish
Gemm_GroupNorm_Swish_Multiply_Swish ConvTranspose3d_MaxPool_Softmax_Subtract_Swish_Max
Conv3d_LeakyReLU_Sum_Clamp_GELU ConvTranspose2d_Softmax_BiasAdd_Scaling_Sigmoid
Conv2d_GroupNorm_Tanh_HardSwish_ResidualAdd_LogSumExp ConvTranspose2d_Add_Min_GELU_Multiply
Gemm_BiasAdd_Hardtanh_Mish_GroupNorm Matmul_Add_Swish_Tanh_GELU_Hardtanh
ConvTranspose3d_Multiply_Max_GlobalAvgPool_Clamp Matmul_BatchNorm_BiasAdd_Divide_Swish
Matmul_AvgPool_GELU_Scale_Max Matmul_GELU_Softmax ConvTranspose3d_Clamp_Min_Divide
    """,
    3: """
MLP ShallowWideMLP DeepNarrowMLP LeNet5 AlexNet GoogleNetInceptionModule GoogleNetInceptionV1
ResNetBasicBlock ResNet18 ResNet101 VGG16 VGG19 DenseNet121TransitionLayer
DenseNet121DenseBlock DenseNet121 DenseNet201 SqueezeNetFireModule SqueezeNet MobileNetV1
MobileNetV2 EfficientNetMBConv EfficientNetB0 EfficientNetB1 EfficientNetB2 ShuffleNetUnit
ShuffleNet RegNet VisionTransformer SwinMLP SwinTransformerV2 VisionAttention
ConvolutionalVisionTransformer VanillaRNN VanillaRNNHidden LSTM LSTMHn LSTMCn
LSTMBidirectional GRU GRUHidden GRUBidirectional GRUBidirectionalHidden MinGPTCausalAttention
MiniGPTBlock UNetSoftmax NetVladWithGhostClusters NetVladNoGhostClusters Mamba2ReturnY
Mamba2ReturnFinalState ReLUSelfAttention
    """,
    4: """
EleutherAI-gpt-neo-2p7B_bs32_seq256 facebook-opt-1p3b_bs1_seq2047
EleutherAI-gpt-neo-2p7B_bs1_seq2047 facebook-opt-1p3b_bs32_seq256
google-bigbird-roberta-base_bs1_seq4095 facebook-bart-large_bs1_seq1023 gpt2_bs32_seq256
facebook-opt-1p3b_bs512_seq32 google-bigbird-roberta-base_bs32_seq256
google-bigbird-roberta-base_bs1024_seq32 google-electra-small-discriminator_bs1_seq511
google-electra-small-discriminator_bs1024_seq32 google-reformer-enwik8_bs32_seq256
google-electra-small-discriminator_bs32_seq256 google-reformer-enwik8_bs1024_seq32
gpt2_bs1_seq1023 facebook-bart-large_bs1024_seq32 EleutherAI-gpt-neo-2p7B_bs512_seq32
gpt2_bs1024_seq32 facebook-bart-large_bs32_seq256
    """,
}
"""By level, in the order of numbers."""
_FORMER = {
    1: {
        50: "Product_reduction_over_a_dimension",
        97: "CosineSimilarityLoss",
    },
    2: {
        27: "Conv3d_HardSwish_ReLU_Softmax_Mean",
        41: "Gemm_BatchNorm_GELU_GroupNorm_Mean_ReLU",
        45: "Gemm_Sigmoid_Sum_LogSumExp",
        58: "ConvTranspose3d_LogSumExp_HardSwish_Subtract_Clamp_Max",
        66: "Matmul_Dropout_Mean_Softmax",
    },
    3: {
        35: "LTSM",
        36: "LTSMHn",
        37: "LTSMCn",
        38: "LTSMBidirectional",
        41: "GRUBirectional",
    },
}
_KNOWN = {
    (level, number): name
    for level, names in _NAMES.items()
    for number, name in enumerate(names.split(), start=1)
}


def number_of(level: str, number: str, name: str) -> tuple[int, int] | None:
    """The level and number that a row means; none where no problem of KernelBench is called so.

    Args:
        level: As the row has it: ``1``, ``level_1``.
        number: The same, where the row has one; it must be the one that the name begins with.
        name: A problem's file, with or without its ending: ``23_Softmax``.
    """
    said = re.fullmatch(r"(?:level[ _]?)?([1-4])(?:\.0)?", level, re.IGNORECASE)
    called = re.fullmatch(r"([1-9][0-9]{0,2})_(.+?)(?:\.py)?", name)
    if said is None or called is None or number.removesuffix(".0") not in ("", called[1]):
        return None
    place = int(said[1]), int(called[1])
    known = (_KNOWN.get(place), _FORMER.get(place[0], {}).get(place[1]))
    return place if called[2] in known else None
