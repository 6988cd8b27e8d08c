// SPDX-License-Identifier: Apache-2.0
// Interface of the library: host arrays in, host arrays out.
#pragma once

/// y += a * x, for arrays of the host.
void axpy(int n, float a, const float* x, float* y);
/// Returns the sum of an array of the host.
float sum(int n, const float* x);
