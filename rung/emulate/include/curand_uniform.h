// SPDX-License-Identifier: Apache-2.0
// Forwarding header: all declarations are in curand_kernel.h.
#pragma once

#include "curand_kernel.h"
