// SPDX-License-Identifier: Apache-2.0
// Programs include this by itself.
#pragma once

#include "cuda_pipeline.h"
