// SPDX-License-Identifier: Apache-2.0
// Forwarding header: rung_cuda/thrust_async.h contains the implemented parts of thrust::async.
#pragma once

#include "rung_cuda/thrust_async.h"
