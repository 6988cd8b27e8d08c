// SPDX-License-Identifier: Apache-2.0
// Sobol's sequences: the points of the first two dimensions, how evenly all of them lie, skipping
// ahead, and the generator of the host.
#include <curand.h>
#include <curand_kernel.h>

#include <set>

#include "check.cuh"

const int drawn = 1024;

template <class State, class Vectors, class Word>
__global__ void draw(Vectors* vectors, Word* out, Word* skipped) {
  State state;
  curand_init(vectors[blockIdx.x], 0, &state);
  for (int i = 0; i < drawn; ++i) out[blockIdx.x * drawn + i] = curand(&state);
  curand_init(vectors[blockIdx.x], 700, &state);
  skipahead(123ull, &state);
  skipped[blockIdx.x] = curand(&state);
}

/// Checks that in each dimension every interval of 1/1024 has one of 1024 points.
template <class Word>
void check_spread(const Array<Word>& out, int dimensions) {
  for (int d = 0; d < dimensions; ++d) {
    std::set<Word> stretches;
    for (int i = 0; i < drawn; ++i) {
      stretches.insert(out.host[d * drawn + i] >> (8 * sizeof(Word) - 10));
    }
    CHECK(stretches.size() == drawn);
  }
}

template <class State, class Vectors, class Word>
void run(Vectors* vectors) {
  const int dimensions = 6;
  const int chosen[dimensions] = {0, 1, 2, 17, 4000, 19999};
  Vectors some[dimensions];
  for (int d = 0; d < dimensions; ++d) {
    for (size_t k = 0; k < 8 * sizeof(Word); ++k) some[d][k] = vectors[chosen[d]][k];
  }
  Vectors* device;
  CUDA(cudaMalloc(&device, sizeof(some)));
  CUDA(cudaMemcpy(device, some, sizeof(some), cudaMemcpyHostToDevice));
  Array<Word> out(dimensions * drawn), skipped(dimensions);
  draw<State><<<dimensions, 1>>>(device, out.device, skipped.device);
  out.down();
  skipped.down();
  CUDA(cudaFree(device));
  check_spread(out, dimensions);
  const double first[2][8] = {{0, .5, .75, .25, .375, .875, .625, .125},
                              {0, .5, .25, .75, .375, .875, .125, .625}};
  for (int d = 0; d < 2; ++d) {
    for (int i = 0; i < 8; ++i)
      CHECK(out[d * drawn + i] == static_cast<Word>(std::ldexp(first[d][i], 8 * sizeof(Word))));
  }
  for (int d = 0; d < dimensions; ++d) CHECK(skipped[d] == out[d * drawn + 823]);
  // The first two together: one point in each box, whatever its shape.
  for (int wide = 0; wide <= 10; ++wide) {
    std::set<unsigned> boxes;
    for (int i = 0; i < drawn; ++i) {
      const unsigned x = static_cast<unsigned>(out[i] >> (8 * sizeof(Word) - 10)) >> (10 - wide);
      const unsigned y = static_cast<unsigned>(out[drawn + i] >> (8 * sizeof(Word) - 10)) >> wide;
      boxes.insert(x << (10 - wide) | y);
    }
    CHECK(boxes.size() == drawn);
  }
}

void on_host() {
  curandGenerator_t generator;
  CHECK(curandCreateGenerator(&generator, CURAND_RNG_QUASI_SOBOL32) == CURAND_STATUS_SUCCESS);
  CHECK(curandSetQuasiRandomGeneratorDimensions(generator, 0) == CURAND_STATUS_OUT_OF_RANGE);
  CHECK(curandSetQuasiRandomGeneratorDimensions(generator, 2) == CURAND_STATUS_SUCCESS);
  Array<float> points(2 * 4096);
  CHECK(curandGenerateUniform(generator, points.device, 8191) == CURAND_STATUS_LENGTH_NOT_MULTIPLE);
  CHECK(curandGenerateUniform(generator, points.device, 8192) == CURAND_STATUS_SUCCESS);
  points.down();
  int within = 0;
  for (int i = 0; i < 4096; ++i) {
    within += points[i] * points[i] + points[4096 + i] * points[4096 + i] < 1 ? 1 : 0;
  }
  CHECK(std::fabs(4.0 * within / 4096 - 3.14159265) < 0.005);
  CHECK(curandGenerateNormal(generator, points.device, 8192, 2.0f, 3.0f) == CURAND_STATUS_SUCCESS);
  points.down();
  double mean = 0, square = 0;
  for (int i = 0; i < 8192; ++i) mean += points[i] / 8192;
  for (int i = 0; i < 8192; ++i) square += (points[i] - mean) * (points[i] - mean) / 8192;
  CHECK(std::fabs(mean - 2) < 0.02 && std::fabs(std::sqrt(square) - 3) < 0.02);
  CHECK(curandDestroyGenerator(generator) == CURAND_STATUS_SUCCESS);
}

__global__ void distributions(curandDirectionVectors32_t* vectors, float* out) {
  curandStateScrambledSobol32 state;
  curand_init(vectors[3], 0x12345678u, 5u, &state);
  curandStateSobol64 unused{};
  (void)unused;
  for (int i = 0; i < 512; ++i) out[i] = curand_uniform(&state);
  for (int i = 0; i < 512; ++i) out[512 + i] = curand_normal(&state);
}

int main() {
  curandDirectionVectors32_t* vectors32;
  curandDirectionVectors64_t* vectors64;
  CHECK(curandGetDirectionVectors32(&vectors32, CURAND_DIRECTION_VECTORS_32_JOEKUO6) ==
        CURAND_STATUS_SUCCESS);
  CHECK(curandGetDirectionVectors64(&vectors64, CURAND_DIRECTION_VECTORS_64_JOEKUO6) ==
        CURAND_STATUS_SUCCESS);
  run<curandStateSobol32, curandDirectionVectors32_t, unsigned>(vectors32);
  run<curandStateSobol64, curandDirectionVectors64_t, unsigned long long>(vectors64);
  on_host();
  curandDirectionVectors32_t* device;
  CUDA(cudaMalloc(&device, 4 * sizeof(*vectors32)));
  CUDA(cudaMemcpy(device, vectors32, 4 * sizeof(*vectors32), cudaMemcpyHostToDevice));
  Array<float> out(1024);
  distributions<<<1, 1>>>(device, out.device);
  out.down();
  double uniform = 0, normal = 0;
  for (int i = 0; i < 512; ++i) {
    CHECK(out[i] > 0 && out[i] <= 1);
    uniform += out[i] / 512;
    normal += out[512 + i] / 512;
  }
  CHECK(std::fabs(uniform - 0.5) < 0.01 && std::fabs(normal) < 0.05);
  CUDA(cudaFree(device));
  return ok();
}
