// SPDX-License-Identifier: Apache-2.0
// Programs include this by itself; everything is in curand_kernel.h.
#pragma once

#include "curand_kernel.h"
