// SPDX-License-Identifier: Apache-2.0
// Types of driver functions that programs look up by name; in cuda.h.
#pragma once

#include "cuda.h"
