#pragma once
#include "mc_runtime.h"
