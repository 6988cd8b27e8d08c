// SPDX-License-Identifier: Apache-2.0
// Device functions and variables that several files share.
#pragma once

struct Settings {
  float spring, damping;
};
extern __constant__ Settings settings;
extern __device__ int steps_done;
__device__ float force(float position, float speed);
__global__ void step(float* positions, float* speeds, int n);
void choose_settings(float spring, float damping);
