// SPDX-License-Identifier: Apache-2.0
// Device function that kernels of other files call.
#include "forces.cuh"

__device__ float force(float position, float speed) {
  return -settings.spring * position - settings.damping * speed;
}
