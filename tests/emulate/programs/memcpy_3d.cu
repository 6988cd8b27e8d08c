// SPDX-License-Identifier: Apache-2.0
// cudaMalloc3D, cudaMemcpy3D and cudaMemset3D.
#include "check.cuh"

int main() {
  const int w = 5, h = 4, d = 3;
  float host[d][h][w], back[d][h][w];
  for (int i = 0; i < w * h * d; ++i) (&host[0][0][0])[i] = static_cast<float>(i);
  cudaPitchedPtr device;
  const cudaExtent extent = make_cudaExtent(w * sizeof(float), h, d);
  CUDA(cudaMalloc3D(&device, extent));
  CUDA(cudaMemset3D(device, 0, extent));
  cudaMemcpy3DParms up = {};
  up.srcPtr = make_cudaPitchedPtr(host, w * sizeof(float), w, h);
  up.dstPtr = device;
  up.extent = extent;
  up.kind = cudaMemcpyHostToDevice;
  CUDA(cudaMemcpy3D(&up));
  cudaMemcpy3DParms down = {};
  down.srcPtr = device;
  down.srcPos = make_cudaPos(0, 1, 1);
  down.dstPtr = make_cudaPitchedPtr(back, w * sizeof(float), w, h);
  down.extent = make_cudaExtent(w * sizeof(float), h - 1, d - 1);
  down.kind = cudaMemcpyDeviceToHost;
  CUDA(cudaMemcpy3D(&down));
  for (int z = 0; z < d - 1; ++z) {
    for (int y = 0; y < h - 1; ++y) {
      for (int x = 0; x < w; ++x) CHECK(back[z][y][x] == host[z + 1][y + 1][x]);
    }
  }
  CUDA(cudaFree(device.ptr));
  return ok();
}
