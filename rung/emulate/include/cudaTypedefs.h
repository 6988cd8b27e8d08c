// SPDX-License-Identifier: Apache-2.0
// Types of the driver's functions, which programs look for by name; in cuda.h.
#pragma once

#include "cuda.h"
