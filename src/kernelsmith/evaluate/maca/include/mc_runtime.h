// MACA's runtime header for NVIDIA GPUs: other names for the same calls, waves of 64 on waves of 32.
// It is there to find out whether a MACA source is right. Its speed says nothing about MetaX GPUs.
#pragma once
#define __INCLUDE_MC_RUNTIME_H__
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define __MACA__ 1
#define __MACACC__ 1
#define USE_MACA 1
#ifdef __CUDA_ARCH__
#define __MACA_ARCH__ 1000
#endif
#include "kernelsmith_names.h"
#include "kernelsmith_limits.h"
#include "kernelsmith_wave.h"
