// SPDX-License-Identifier: Apache-2.0
// Names that programs with cuRAND's device interface also use; its host interface is not covered.
#pragma once

#include "cuda_runtime.h"

typedef enum curandStatus { CURAND_STATUS_SUCCESS = 0 } curandStatus_t;
