// SPDX-License-Identifier: Apache-2.0
// An iterator of CUB.
#pragma once

#include "rung_cuda/cub_types.h"
