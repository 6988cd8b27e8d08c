// SPDX-License-Identifier: Apache-2.0
// Forwarding header: rung_cuda/thrust_async.h has all of thrust::async.
#pragma once

#include "rung_cuda/thrust_async.h"
