// SPDX-License-Identifier: Apache-2.0
// Cooperative groups: blocks, tiles of warps, coalesced lanes, grids and clusters.
#pragma once

#include "cuda_runtime.h"
#include "rung_cuda/groups.h"
#include "rung_cuda/tiles.h"
