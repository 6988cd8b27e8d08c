// SPDX-License-Identifier: Apache-2.0
// Forwarding header: implemented in rung_cuda/cub_move.h.
#pragma once

#include "rung_cuda/cub_move.h"
