// SPDX-License-Identifier: Apache-2.0
// Forwarding header: types of driver functions that programs look up by name are in cuda.h.
#pragma once

#include "cuda.h"
