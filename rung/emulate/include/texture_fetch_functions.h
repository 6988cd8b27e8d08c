// SPDX-License-Identifier: Apache-2.0
// Programs include this by itself; everything is in cuda_runtime.h.
#pragma once

#include "cuda_runtime.h"
