// SPDX-License-Identifier: Apache-2.0
// Programs include this by itself; everything is in cublas_v2.h.
#pragma once

#include "cublas_v2.h"
