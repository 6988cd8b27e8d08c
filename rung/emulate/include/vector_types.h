// SPDX-License-Identifier: Apache-2.0
// Forwarding header: all declarations are in cuda_runtime.h.
#pragma once

#include "cuda_runtime.h"
