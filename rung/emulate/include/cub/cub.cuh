// SPDX-License-Identifier: Apache-2.0
// The implemented parts of CUB.
#pragma once

#include "rung_cuda/cub_block.h"
#include "rung_cuda/cub_block_scan.h"
#include "rung_cuda/cub_block_sort.h"
#include "rung_cuda/cub_block_tools.h"
#include "rung_cuda/cub_compare.h"
#include "rung_cuda/cub_device.h"
#include "rung_cuda/cub_move.h"
#include "rung_cuda/cub_select.h"
#include "rung_cuda/cub_sort.h"
#include "rung_cuda/cub_warp.h"
