// SPDX-License-Identifier: Apache-2.0
// An algorithm of CUB.
#pragma once

#include "rung_cuda/cub_compare.h"
