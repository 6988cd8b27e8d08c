// SPDX-License-Identifier: Apache-2.0
// Programs include this by itself; everything is in nvtx3/.
#pragma once

#include "nvtx3/nvToolsExtCudaRt.h"
