// SPDX-License-Identifier: Apache-2.0
// cuRAND host interface: arrays of random numbers. Every pseudorandom generator is implemented as
// Philox, so the numbers have the same quality as cuRAND's but different values; the quasirandom
// generators are Sobol's.
#pragma once

#include <vector>

#include "curand_kernel.h"

#define CURAND_H_

typedef enum curandStatus {
  CURAND_STATUS_SUCCESS = 0,
  CURAND_STATUS_VERSION_MISMATCH = 100,
  CURAND_STATUS_NOT_INITIALIZED = 101,
  CURAND_STATUS_ALLOCATION_FAILED = 102,
  CURAND_STATUS_TYPE_ERROR = 103,
  CURAND_STATUS_OUT_OF_RANGE = 104,
  CURAND_STATUS_LENGTH_NOT_MULTIPLE = 105,
  CURAND_STATUS_DOUBLE_PRECISION_REQUIRED = 106,
  CURAND_STATUS_LAUNCH_FAILURE = 201,
  CURAND_STATUS_PREEXISTING_FAILURE = 202,
  CURAND_STATUS_INITIALIZATION_FAILED = 203,
  CURAND_STATUS_ARCH_MISMATCH = 204,
  CURAND_STATUS_INTERNAL_ERROR = 999
} curandStatus_t;
typedef enum curandRngType {
  CURAND_RNG_PSEUDO_DEFAULT = 100,
  CURAND_RNG_PSEUDO_XORWOW = 101,
  CURAND_RNG_PSEUDO_MRG32K3A = 121,
  CURAND_RNG_PSEUDO_MTGP32 = 141,
  CURAND_RNG_PSEUDO_MT19937 = 142,
  CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161,
  CURAND_RNG_QUASI_DEFAULT = 200,
  CURAND_RNG_QUASI_SOBOL32 = 201,
  CURAND_RNG_QUASI_SCRAMBLED_SOBOL32 = 202,
  CURAND_RNG_QUASI_SOBOL64 = 203,
  CURAND_RNG_QUASI_SCRAMBLED_SOBOL64 = 204
} curandRngType_t;
typedef enum curandOrdering {
  CURAND_ORDERING_PSEUDO_BEST = 100,
  CURAND_ORDERING_PSEUDO_DEFAULT = 101,
  CURAND_ORDERING_PSEUDO_SEEDED = 102,
  CURAND_ORDERING_QUASI_DEFAULT = 201
} curandOrdering_t;
typedef enum curandDirectionVectorSet {
  CURAND_DIRECTION_VECTORS_32_JOEKUO6 = 101,
  CURAND_SCRAMBLED_DIRECTION_VECTORS_32_JOEKUO6 = 102,
  CURAND_DIRECTION_VECTORS_64_JOEKUO6 = 103,
  CURAND_SCRAMBLED_DIRECTION_VECTORS_64_JOEKUO6 = 104
} curandDirectionVectorSet_t;

struct curandGenerator_st {
  unsigned long long seed = 0, next = 0;  // next 32-bit number of the stream, or next Sobol point
  curandRngType_t type = CURAND_RNG_PSEUDO_DEFAULT;
  int dimensions = 1;
  bool quasi() const { return type >= CURAND_RNG_QUASI_DEFAULT; }
};
typedef curandGenerator_st* curandGenerator_t;

inline curandStatus_t curandCreateGenerator(curandGenerator_t* generator, curandRngType_t type) {
  *generator = new curandGenerator_st{.type = type};
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandCreateGeneratorHost(curandGenerator_t* generator,
                                                curandRngType_t type) {
  return curandCreateGenerator(generator, type);
}
inline curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
  delete generator;
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator,
                                                         unsigned long long seed) {
  if (generator->quasi()) return CURAND_STATUS_TYPE_ERROR;
  generator->seed = seed;
  generator->next = 0;
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetQuasiRandomGeneratorDimensions(curandGenerator_t generator,
                                                              unsigned dimensions) {
  if (!generator->quasi()) return CURAND_STATUS_TYPE_ERROR;
  if (dimensions < 1 || dimensions > rung::cuda::sobol_dimensions) {
    return CURAND_STATUS_OUT_OF_RANGE;
  }
  generator->dimensions = static_cast<int>(dimensions);
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandGetDirectionVectors32(curandDirectionVectors32_t** vectors,
                                                  curandDirectionVectorSet_t set) {
  if (set != CURAND_DIRECTION_VECTORS_32_JOEKUO6 &&
      set != CURAND_SCRAMBLED_DIRECTION_VECTORS_32_JOEKUO6) {
    return CURAND_STATUS_OUT_OF_RANGE;
  }
  *vectors = (curandDirectionVectors32_t*)rung::cuda::sobol_vectors32();
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandGetDirectionVectors64(curandDirectionVectors64_t** vectors,
                                                  curandDirectionVectorSet_t set) {
  if (set != CURAND_DIRECTION_VECTORS_64_JOEKUO6 &&
      set != CURAND_SCRAMBLED_DIRECTION_VECTORS_64_JOEKUO6) {
    return CURAND_STATUS_OUT_OF_RANGE;
  }
  *vectors = (curandDirectionVectors64_t*)rung::cuda::sobol_vectors64();
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator,
                                               unsigned long long offset) {
  generator->next = offset;
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetGeneratorOrdering(curandGenerator_t, curandOrdering_t) {
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetStream(curandGenerator_t, cudaStream_t) {
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandGenerateSeeds(curandGenerator_t) { return CURAND_STATUS_SUCCESS; }

namespace rung::cuda {

inline unsigned next_bits(curandGenerator_st& generator) {
  const unsigned long long block = generator.next / 4, lane = generator.next % 4;
  ++generator.next;
  const uint4 four =
      philox({static_cast<unsigned>(block), static_cast<unsigned>(block >> 32), 0, 0},
             {static_cast<unsigned>(generator.seed), static_cast<unsigned>(generator.seed >> 32)});
  return lane == 0 ? four.x : lane == 1 ? four.y : lane == 2 ? four.z : four.w;
}
/// Fills host or device memory with results of make() or, for quasirandom generators, with Sobol
/// points, one dimension after another. `invert` maps uniform numbers to the distribution.
template <class T, class Make, class Invert>
curandStatus_t fill_random(curandGenerator_st& generator, T* out, size_t count, Make make,
                           Invert invert) {
  std::vector<T> numbers(count);
  if (generator.quasi()) {
    const size_t points = count / static_cast<size_t>(generator.dimensions);
    if (points * static_cast<size_t>(generator.dimensions) != count) {
      return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
    }
    const bool shifted = generator.type == CURAND_RNG_QUASI_SCRAMBLED_SOBOL32 ||
                         generator.type == CURAND_RNG_QUASI_SCRAMBLED_SOBOL64;
    auto to = numbers.begin();
    for (int dimension = 0; dimension < generator.dimensions; ++dimension) {
      curandStateSobol64 state;
      begin_sobol(sobol_vectors64() + 64ull * static_cast<size_t>(dimension),
                  shifted ? sobol_shift(dimension) : 0, generator.next, &state);
      for (size_t i = 0; i < points; ++i) *to++ = static_cast<T>(invert(curand(&state)));
    }
    generator.next += points;
  } else {
    for (T& one : numbers) one = make();
  }
  const cudaError_t error = cudaMemcpy(out, numbers.data(), count * sizeof(T), cudaMemcpyDefault);
  return error == cudaSuccess ? CURAND_STATUS_SUCCESS : CURAND_STATUS_LAUNCH_FAILURE;
}
inline double next_normal(curandGenerator_st& generator) {
  const double u = uniform_double(next_bits(generator), next_bits(generator));
  const double v = uniform_double(next_bits(generator), next_bits(generator));
  return sqrt(-2 * log(u)) * cos(2 * CUDART_PI * v);
}

}  // namespace rung::cuda

inline curandStatus_t curandGenerate(curandGenerator_t generator, unsigned* out, size_t count) {
  return rung::cuda::fill_random(
      *generator, out, count, [=] { return rung::cuda::next_bits(*generator); },
      [](unsigned long long bits) { return bits >> 32; });
}
inline curandStatus_t curandGenerateLongLong(curandGenerator_t generator, unsigned long long* out,
                                             size_t count) {
  if (!generator->quasi()) return CURAND_STATUS_TYPE_ERROR;
  return rung::cuda::fill_random(
      *generator, out, count, [] { return 0; }, [](unsigned long long bits) { return bits; });
}
inline curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* out, size_t count) {
  return rung::cuda::fill_random(
      *generator, out, count,
      [=] { return rung::cuda::uniform_float(rung::cuda::next_bits(*generator)); },
      [](unsigned long long bits) { return rung::cuda::quasi_uniform(bits); });
}
inline curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* out,
                                                  size_t count) {
  return rung::cuda::fill_random(
      *generator, out, count,
      [=] {
        const unsigned low = rung::cuda::next_bits(*generator);
        return rung::cuda::uniform_double(low, rung::cuda::next_bits(*generator));
      },
      [](unsigned long long bits) { return rung::cuda::quasi_uniform(bits); });
}
#define RUNG_RANDOM(name, T, value)                                                          \
  inline curandStatus_t name(curandGenerator_t generator, T* out, size_t count, T mean,      \
                             T deviation) {                                                  \
    const auto scaled = [=](double standard) {                                               \
      const double normal = mean + deviation * standard;                                     \
      return static_cast<T>(value);                                                          \
    };                                                                                       \
    return rung::cuda::fill_random(                                                          \
        *generator, out, count, [=] { return scaled(rung::cuda::next_normal(*generator)); }, \
        [=](unsigned long long bits) {                                                       \
          return scaled(normcdfinv(rung::cuda::quasi_uniform(bits)));                        \
        });                                                                                  \
  }
RUNG_RANDOM(curandGenerateNormal, float, normal)
RUNG_RANDOM(curandGenerateNormalDouble, double, normal)
RUNG_RANDOM(curandGenerateLogNormal, float, exp(normal))
RUNG_RANDOM(curandGenerateLogNormalDouble, double, exp(normal))
#undef RUNG_RANDOM
