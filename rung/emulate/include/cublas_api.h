// SPDX-License-Identifier: Apache-2.0
// Forwarding header: all declarations are in cublas_v2.h.
#pragma once

#include "cublas_v2.h"
