// SPDX-License-Identifier: Apache-2.0
// Forwarding header: all declarations are in nvtx3/.
#pragma once

#include "nvtx3/nvToolsExtCudaRt.h"
