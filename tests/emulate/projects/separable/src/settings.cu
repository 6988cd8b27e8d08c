// SPDX-License-Identifier: Apache-2.0
// Definitions of the shared variables.
#include "forces.cuh"

__constant__ Settings settings;
__device__ int steps_done;

void choose_settings(float spring, float damping) {
  const Settings chosen{spring, damping};
  cudaMemcpyToSymbol(settings, &chosen, sizeof chosen);
}
