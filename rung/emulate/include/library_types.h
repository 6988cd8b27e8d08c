// SPDX-License-Identifier: Apache-2.0
// Forwarding header: run-time data types of CUDA's libraries.
#pragma once

#include "rung_cuda/data_types.h"
