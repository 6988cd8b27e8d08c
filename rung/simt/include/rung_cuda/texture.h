// SPDX-License-Identifier: Apache-2.0
// Texture and surface objects: fetches by point and by linear filtering.
#pragma once

#include "rung_cuda/runtime_api.h"
#include "rung_cuda/vector_types.h"
