// SPDX-License-Identifier: Apache-2.0
// A collective of CUB.
#pragma once

#include "rung_cuda/cub_block.h"
