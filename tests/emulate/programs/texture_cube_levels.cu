// SPDX-License-Identifier: Apache-2.0
// Cube maps, levels of detail, and the four elements around a point.
#include "check.cuh"

__global__ void look_around(cudaTextureObject_t cube, float* out) {
  const float3 directions[6] = {{1, 0, 0},  {-1, 0, 0}, {0, 1, 0},
                                {0, -1, 0}, {0, 0, 1},  {0, 0, -1}};
  const float3 d = directions[threadIdx.x];
  out[threadIdx.x] = texCubemap<float>(cube, d.x, d.y, d.z);
}
__global__ void off_center(cudaTextureObject_t cube, float* out) {
  // On the face of +x the first coordinate is -z and the second -y.
  out[0] = texCubemap<float>(cube, 1, 0.5f, 0.5f);
  out[1] = texCubemap<float>(cube, 1, 0.5f, -0.5f);
  out[2] = texCubemap<float>(cube, 1, -0.5f, 0.5f);
}
__global__ void levels(cudaTextureObject_t texture, float* out) {
  const float lods[4] = {0, 1, 0.5f, 9};
  out[threadIdx.x] = tex2DLod<float>(texture, 0.5f, 0.5f, lods[threadIdx.x]);
}
__global__ void four(cudaTextureObject_t texture, float4* out) {
  *out = tex2Dgather<float4>(texture, 1.0f, 1.0f, 0);
}

cudaTextureObject_t make(cudaResourceDesc resource, bool normalized, cudaTextureFilterMode levels) {
  cudaTextureDesc description = {};
  for (auto& mode : description.addressMode) mode = cudaAddressModeClamp;
  description.filterMode = cudaFilterModePoint;
  description.mipmapFilterMode = levels;
  description.maxMipmapLevelClamp = 2;
  description.normalizedCoords = normalized;
  cudaTextureObject_t texture = 0;
  CUDA(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  return texture;
}

int main() {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  Array<float> out(6);

  float faces[6][2][2];
  for (int i = 0; i < 24; ++i) (&faces[0][0][0])[i] = static_cast<float>(i);
  cudaArray_t cube;
  CUDA(cudaMalloc3DArray(&cube, &format, make_cudaExtent(2, 2, 6), cudaArrayCubemap));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(faces, 2 * sizeof(float), 2, 2);
  copy.dstArray = cube;
  copy.extent = make_cudaExtent(2, 2, 6);
  copy.kind = cudaMemcpyHostToDevice;
  CUDA(cudaMemcpy3D(&copy));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = cube;
  cudaTextureObject_t texture = make(resource, true, cudaFilterModePoint);
  look_around<<<1, 6>>>(texture, out.device);
  out.down();
  for (int i = 0; i < 6; ++i) CHECK(static_cast<int>(out[i]) / 4 == i);
  off_center<<<1, 1>>>(texture, out.device);
  out.down();
  CHECK(out[0] == 0 && out[1] == 1 && out[2] == 2);
  CUDA(cudaDestroyTextureObject(texture));
  CUDA(cudaFreeArray(cube));

  cudaMipmappedArray_t pyramid;
  CUDA(cudaMallocMipmappedArray(&pyramid, &format, make_cudaExtent(4, 4, 0), 3));
  for (unsigned level = 0; level < 3; ++level) {
    float values[16];
    for (float& value : values) value = 10.0f * static_cast<float>(level);
    const size_t side = 4 >> level;
    cudaArray_t one;
    cudaExtent extent;
    CUDA(cudaGetMipmappedArrayLevel(&one, pyramid, level));
    CUDA(cudaArrayGetInfo(nullptr, &extent, nullptr, one));
    CHECK(extent.width == side && extent.height == side);
    CUDA(cudaMemcpy2DToArray(one, 0, 0, values, side * sizeof(float), side * sizeof(float), side,
                             cudaMemcpyHostToDevice));
  }
  resource.resType = cudaResourceTypeMipmappedArray;
  resource.res.mipmap.mipmap = pyramid;
  texture = make(resource, true, cudaFilterModeLinear);
  levels<<<1, 4>>>(texture, out.device);
  out.down();
  CHECK(out[0] == 0 && out[1] == 10 && out[2] == 5 && out[3] == 20);
  CUDA(cudaDestroyTextureObject(texture));

  cudaArray_t base;
  const float values[4] = {1, 2, 3, 4};
  CUDA(cudaMallocArray(&base, &format, 2, 2, cudaArrayTextureGather));
  CUDA(cudaMemcpy2DToArray(base, 0, 0, values, 8, 8, 2, cudaMemcpyHostToDevice));
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = base;
  texture = make(resource, false, cudaFilterModePoint);
  Array<float4> corners(1);
  four<<<1, 1>>>(texture, corners.device);
  corners.down();
  CHECK(corners[0].x == 3 && corners[0].y == 4 && corners[0].z == 2 && corners[0].w == 1);
  CUDA(cudaDestroyTextureObject(texture));
  CUDA(cudaFreeArray(base));
  CUDA(cudaFreeMipmappedArray(pyramid));
  return ok();
}
