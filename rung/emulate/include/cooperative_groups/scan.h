// SPDX-License-Identifier: Apache-2.0
// Collectives of cooperative groups.
#pragma once

#include "rung_cuda/group_algorithms.h"
