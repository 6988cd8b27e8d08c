// SPDX-License-Identifier: Apache-2.0
#include "forces.cuh"

__device__ float force(float position, float speed) {
  return -settings.spring * position - settings.damping * speed;
}
