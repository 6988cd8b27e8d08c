// SPDX-License-Identifier: Apache-2.0
// ldmatrix and mma.sync: the last lane to arrive computes the results of the warp.
#include "rung/simt/matrix.hpp"

#include <cstring>

#include "rung/core/dtype.hpp"
#include "rung/simt/record/operations.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt {
namespace {

constexpr std::uint32_t whole_warp = 0xffffffffu;

void require_whole_warp(std::uint32_t lanes, const char* operation) {
  if (lanes == whole_warp) return;
  Worker& here = running_worker(operation);
  here.blame(std::string("simulated GPU: ") + operation + " in a warp of which lanes have exited",
             here.current(), &here.current().place);
  here.abandon();
}

struct LoadRequest {
  std::uint32_t* registers;
  int count;
  bool transposed;
  const void* row;
};

void resolve_load(void* const* requests, std::uint32_t lanes) {
  require_whole_warp(lanes, "ldmatrix");
  const auto& first = *static_cast<const LoadRequest*>(requests[0]);
  for (int matrix = 0; matrix < first.count; ++matrix) {
    std::uint16_t elements[8][8];
    for (int row = 0; row < 8; ++row) {
      std::memcpy(elements[row], static_cast<const LoadRequest*>(requests[8 * matrix + row])->row,
                  16);
    }
    for (int lane = 0; lane < warp_lanes; ++lane) {
      const int row = lane / 4, column = 2 * (lane % 4);
      const std::uint16_t low = first.transposed ? elements[column][row] : elements[row][column];
      const std::uint16_t high =
          first.transposed ? elements[column + 1][row] : elements[row][column + 1];
      static_cast<LoadRequest*>(requests[lane])->registers[matrix] =
          static_cast<std::uint32_t>(high) << 16 | low;
    }
  }
}

struct StoreRequest {
  const std::uint32_t* registers;
  int count;
  bool transposed;
  void* row;
};

void resolve_store(void* const* requests, std::uint32_t lanes) {
  require_whole_warp(lanes, "stmatrix");
  const auto& first = *static_cast<const StoreRequest*>(requests[0]);
  for (int matrix = 0; matrix < first.count; ++matrix) {
    std::uint16_t elements[8][8];
    for (int lane = 0; lane < warp_lanes; ++lane) {
      const int row = lane / 4, column = 2 * (lane % 4);
      const std::uint32_t pair =
          static_cast<const StoreRequest*>(requests[lane])->registers[matrix];
      for (int i = 0; i < 2; ++i) {
        const auto element = static_cast<std::uint16_t>(pair >> (16 * i));
        (first.transposed ? elements[column + i][row] : elements[row][column + i]) = element;
      }
    }
    for (int row = 0; row < 8; ++row) {
      std::memcpy(static_cast<StoreRequest*>(requests[8 * matrix + row])->row, elements[row], 16);
    }
  }
}

struct MultiplyRequest {
  float* d;
  const std::uint32_t* a;
  const std::uint32_t* b;
  const float* c;
};

/// Returns element `half` (0 or 1) of a register that holds two 16-bit floats.
template <class T>
float half_of(std::uint32_t packed, int half) {
  return static_cast<float>(T::from_bits(static_cast<std::uint16_t>(packed >> (16 * half))));
}

template <int K>
void multiply(void* const* requests, const float (&a)[16][K], const float (&b)[K][8]) {
  for (int lane = 0; lane < warp_lanes; ++lane) {
    const auto& mine = *static_cast<const MultiplyRequest*>(requests[lane]);
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + 8 * (i / 2);
      const int column = 2 * (lane % 4) + i % 2;
      float sum = mine.c[i];
      for (int k = 0; k < K; ++k) sum += a[row][k] * b[k][column];
      mine.d[i] = sum;
    }
  }
}

/// Computes mma.m16n8k16 with two elements per register: PTX manual, "Matrix Fragments for
/// mma.m16n8k16".
template <class T>
void resolve_k16(void* const* requests, std::uint32_t lanes) {
  require_whole_warp(lanes, "mma.sync");
  record::note_product(16, 8, 16);
  float a[16][16];
  float b[16][8];
  for (int lane = 0; lane < warp_lanes; ++lane) {
    const auto& one = *static_cast<const MultiplyRequest*>(requests[lane]);
    const int group = lane / 4, pair = 2 * (lane % 4);
    for (int i = 0; i < 8; ++i) {
      const int row = group + 8 * (i / 2 % 2);
      const int column = pair + i % 2 + 8 * (i / 4);
      a[row][column] = half_of<T>(one.a[i / 2], i % 2);
    }
    for (int i = 0; i < 4; ++i) {
      b[pair + i % 2 + 8 * (i / 2)][group] = half_of<T>(one.b[i / 2], i % 2);
    }
  }
  multiply<16>(requests, a, b);
}

/// Computes mma.m16n8k8 with one element per register: "Matrix fragments for mma.m16n8k8".
void resolve_k8(void* const* requests, std::uint32_t lanes) {
  require_whole_warp(lanes, "mma.sync");
  record::note_product(16, 8, 8);
  float a[16][8];
  float b[8][8];
  for (int lane = 0; lane < warp_lanes; ++lane) {
    const auto& one = *static_cast<const MultiplyRequest*>(requests[lane]);
    const int group = lane / 4, within = lane % 4;
    for (int i = 0; i < 4; ++i) {
      a[group + 8 * (i % 2)][within + 4 * (i / 2)] =
          truncate_to_tf32(__builtin_bit_cast(float, one.a[i]));
    }
    for (int i = 0; i < 2; ++i) {
      b[within + 4 * i][group] = truncate_to_tf32(__builtin_bit_cast(float, one.b[i]));
    }
  }
  multiply<8>(requests, a, b);
}

struct DoubleRequest {
  double* sums;
  const double* a;
  const double* b;
};

/// Computes f64 products with one element per register. Elements k = 0 .. 7 are laid out as in
/// TF32; further elements follow them.
template <int K>
void resolve_doubles(void* const* requests, std::uint32_t lanes) {
  require_whole_warp(lanes, "mma.sync");
  record::note_product(16, 8, K);
  double a[16][K];
  double b[K][8];
  for (int lane = 0; lane < warp_lanes; ++lane) {
    const auto& one = *static_cast<const DoubleRequest*>(requests[lane]);
    const int group = lane / 4, within = lane % 4;
    for (int i = 0; i < K / 2; ++i) a[group + 8 * (i % 2)][within + 4 * (i / 2)] = one.a[i];
    for (int i = 0; i < K / 4; ++i) b[within + 4 * i][group] = one.b[i];
  }
  for (int lane = 0; lane < warp_lanes; ++lane) {
    const auto& mine = *static_cast<const DoubleRequest*>(requests[lane]);
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + 8 * (i / 2);
      const int column = 2 * (lane % 4) + i % 2;
      for (int k = 0; k < K; ++k) mine.sums[i] += a[row][k] * b[k][column];
    }
  }
}

struct BytesRequest {
  int* d;
  const std::uint32_t* a;
  const std::uint32_t* b;
  const int* c;
  bool a_signed, b_signed;
};

int byte_of(std::uint32_t packed, int i, bool is_signed) {
  const auto byte = static_cast<std::uint8_t>(packed >> (8 * i));
  return is_signed ? static_cast<std::int8_t>(byte) : byte;
}

/// Computes mma.m16n8k32 with four elements per register: "Matrix fragments for mma.m16n8k32".
void resolve_bytes(void* const* requests, std::uint32_t lanes) {
  require_whole_warp(lanes, "mma.sync");
  record::note_product(16, 8, 32);
  int a[16][32];
  int b[32][8];
  for (int lane = 0; lane < warp_lanes; ++lane) {
    const auto& one = *static_cast<const BytesRequest*>(requests[lane]);
    const int group = lane / 4, four = 4 * (lane % 4);
    for (int i = 0; i < 16; ++i) {
      a[group + 8 * (i / 4 % 2)][four + i % 4 + 16 * (i / 8)] =
          byte_of(one.a[i / 4], i % 4, one.a_signed);
    }
    for (int i = 0; i < 8; ++i) {
      b[four + i % 4 + 16 * (i / 4)][group] = byte_of(one.b[i / 4], i % 4, one.b_signed);
    }
  }
  for (int lane = 0; lane < warp_lanes; ++lane) {
    const auto& mine = *static_cast<const BytesRequest*>(requests[lane]);
    for (int i = 0; i < 4; ++i) {
      auto sum = static_cast<std::uint32_t>(mine.c[i]);
      for (int k = 0; k < 32; ++k) {
        sum +=
            static_cast<std::uint32_t>(a[lane / 4 + 8 * (i / 2)][k] * b[k][2 * (lane % 4) + i % 2]);
      }
      mine.d[i] = static_cast<int>(sum);
    }
  }
}

void require_rows(const char* operation, const void* row, Place place) {
  if (reinterpret_cast<std::uintptr_t>(row) % 16 == 0) return;
  Worker& here = running_worker(operation);
  here.blame(std::string("simulated GPU: misaligned address: ") + operation +
                 " needs rows aligned to 16 bytes",
             here.current(), &place);
  here.abandon();
}

}  // namespace

void load_matrix(std::uint32_t* registers, int count, bool transposed, const void* row,
                 Place place) {
  require_rows("ldmatrix", row, place);
  // Lane 8 i + r holds the address of row r of matrix i.
  if (lane_index() < 8 * count) record::note(row, 16, record::Access::read, place);
  LoadRequest request{registers, count, transposed, row};
  warp_collective(whole_warp, "ldmatrix", resolve_load, &request, place);
}

void store_matrix(void* row, const std::uint32_t* registers, int count, bool transposed,
                  Place place) {
  require_rows("stmatrix", row, place);
  StoreRequest request{registers, count, transposed, row};
  warp_collective(whole_warp, "stmatrix", resolve_store, &request, place);
  if (lane_index() < 8 * count) record::note(row, 16, record::Access::write, place);
}

void multiply_bytes(int* d, const std::uint32_t* a, const std::uint32_t* b, const int* c,
                    bool a_signed, bool b_signed, Place place) {
  BytesRequest request{d, a, b, c, a_signed, b_signed};
  warp_collective(whole_warp, "mma.sync", resolve_bytes, &request, place);
}

void multiply_m16n8_f64(double* sums, const double* a, const double* b, int depth, Place place) {
  DoubleRequest request{sums, a, b};
  const auto resolve = depth == 4   ? resolve_doubles<4>
                       : depth == 8 ? resolve_doubles<8>
                                    : resolve_doubles<16>;
  warp_collective(whole_warp, "mma.sync", resolve, &request, place);
}

void multiply_m16n8(float* d, const std::uint32_t* a, const std::uint32_t* b, const float* c,
                    MatrixType type, Place place) {
  MultiplyRequest request{d, a, b, c};
  const Resolve resolve = type == MatrixType::tf32  ? resolve_k8
                          : type == MatrixType::f16 ? resolve_k16<f16>
                                                    : resolve_k16<bf16>;
  warp_collective(whole_warp, "mma.sync", resolve, &request, place);
}

float round_to_tf32(float value) {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
  if ((bits & 0x7f800000u) == 0x7f800000u) return truncate_to_tf32(value);  // infinity or NaN
  return truncate_to_tf32(__builtin_bit_cast(float, bits + 0x1000u));
}

}  // namespace rung::simt
