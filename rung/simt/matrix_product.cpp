// SPDX-License-Identifier: Apache-2.0
// wgmma: reads the operands from shared memory and registers, and multiplies them.
#include "rung/simt/matrix_product.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>

#include "rung/core/dtype.hpp"
#include "rung/simt/limits.hpp"
#include "rung/simt/matrix.hpp"
#include "rung/simt/record/recorder.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt {
namespace {

constexpr int rows_of_a = 64;
constexpr int bytes_of_k = 32;  // bytes of K per instruction, for every type
constexpr int max_k = 32;       // for 1-byte elements
constexpr int max_columns = 256;
constexpr int piece_bytes = 16;  // unit that remains contiguous under every swizzle

int element_bytes(WgmmaType type) {
  switch (type) {
    case WgmmaType::f16:
    case WgmmaType::bf16:
      return 2;
    case WgmmaType::tf32:
      return 4;
    default:
      return 1;
  }
}

bool is_integer(WgmmaType type) { return type == WgmmaType::s8 || type == WgmmaType::u8; }

/// Loads an element and converts it to float.
float value_at(WgmmaType type, const void* element) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, element, static_cast<std::size_t>(element_bytes(type)));
  const auto half = static_cast<std::uint16_t>(bits);
  const auto byte = static_cast<std::uint8_t>(bits);
  switch (type) {
    case WgmmaType::f16:
      return static_cast<float>(f16::from_bits(half));
    case WgmmaType::bf16:
      return static_cast<float>(bf16::from_bits(half));
    case WgmmaType::tf32:
      return truncate_to_tf32(__builtin_bit_cast(float, bits));
    case WgmmaType::e4m3:
      return static_cast<float>(e4m3::from_bits(byte));
    case WgmmaType::e5m2:
      return static_cast<float>(e5m2::from_bits(byte));
    case WgmmaType::s8:
      return static_cast<float>(static_cast<std::int8_t>(byte));
    case WgmmaType::u8:
      break;
  }
  return static_cast<float>(byte);
}

/// Returns the offset of a piece within the block's shared memory; fails the launch if it is out of
/// bounds.
std::size_t offset_of(Worker& here, const MatrixProduct& product, std::uint32_t address) {
  const std::size_t offset = address - shared_bytes_reserved;
  if (address >= shared_bytes_reserved && offset + piece_bytes <= shared_room(here.launch())) {
    return offset;
  }
  here.blame("simulated GPU: wgmma reads outside the block's shared memory, at address " +
                 std::to_string(address) + ": its matrix descriptors are wrong",
             here.current(), &product.place);
  here.abandon();
}

OperandShape shape_of_a(const MatrixProduct& product) {
  return {rows_of_a, element_bytes(product.shape.a), product.shape.turn_a};
}
OperandShape shape_of_b(const MatrixProduct& product) {
  return {product.shape.n, element_bytes(product.shape.b), product.shape.turn_b};
}

/// Calls f(row, k, address) for the first element of each 16-byte piece of rows [first, last).
template <class F>
void for_each_piece(std::uint64_t matrix, const OperandShape& shape, int first, int last, F f) {
  const int row_step = shape.turned ? piece_bytes / shape.element : 1;
  const int k_step = shape.turned ? 1 : piece_bytes / shape.element;
  for (int row = first; row < last; row += row_step) {
    for (int k = 0; k < bytes_of_k / shape.element; k += k_step) {
      f(row, k, operand_address(matrix, shape, row, k));
    }
  }
}

/// Reads an operand from shared memory; stores element (row, k) at to + row *
/// row_stride + k * k_stride.
void read_shared(Worker& here, const Block& block, const MatrixProduct& product,
                 std::uint64_t matrix, const OperandShape& shape, WgmmaType type, bool negate,
                 float* to, int row_stride, int k_stride) {
  const int elements = piece_bytes / shape.element;
  for_each_piece(matrix, shape, 0, shape.rows, [&](int row, int k, std::uint32_t address) {
    const std::byte* piece = block.shared + offset_of(here, product, address);
    float* const at = to + row * row_stride + k * k_stride;
    const int stride = shape.turned ? row_stride : k_stride;
    for (int i = 0; i < elements; ++i) {
      const float value = value_at(type, piece + i * shape.element);
      at[i * stride] = negate ? -value : value;
    }
  });
}

/// Reads A from registers; the layout is described in ptx/wgmma.hpp.
void read_registers(const MatrixProduct& product, float (&to)[rows_of_a][max_k]) {
  const WgmmaType type = product.shape.a;
  const int element = element_bytes(type);
  const int each = 4 / element;
  for (int thread = 0; thread < warpgroup_threads; ++thread) {
    const int lane = thread % warp_lanes;
    for (int i = 0; i < 4; ++i) {
      const int row = 16 * (thread / warp_lanes) + lane / 4 + 8 * (i % 2);
      const auto* word = reinterpret_cast<const std::byte*>(&product.a[4 * thread + i]);
      for (int j = 0; j < each; ++j) {
        const int k = each * (lane % 4 + 4 * (i / 2)) + j;
        const float value = value_at(type, word + j * element);
        to[row][k] = product.shape.negate_a ? -value : value;
      }
    }
  }
}

/// Row and column of a thread's i-th sum.
struct Spot {
  int row, column;
};
Spot spot_of(int thread, int i) {
  const int lane = thread % warp_lanes;
  return {16 * (thread / warp_lanes) + lane / 4 + 8 * (i / 2 % 2),
          8 * (i / 4) + 2 * (lane % 4) + i % 2};
}

/// Adds 8-bit float products as Hopper does: aligns all terms and the sum to the largest exponent,
/// and truncates them to 14 bits [DeepSeek-AI, "DeepSeek-V3 Technical Report", section 3.3.2]. `b`:
/// a column of B.
float add_aligned(float sum, const float (&a)[max_k], const float* b, int depth) {
  constexpr int kept_bits = 14;
  float terms[max_k];
  float largest = std::abs(sum);
  for (int k = 0; k < depth; ++k) {
    terms[k] = a[k] * b[k * max_columns];
    largest = std::max(largest, std::abs(terms[k]));
    if (std::isnan(terms[k])) return terms[k];
  }
  if (largest == 0) return 0;
  if (!(largest < std::numeric_limits<float>::infinity())) {
    for (int k = 0; k < depth; ++k) sum += terms[k];
    return sum;
  }
  const int unit = std::ilogb(largest) - (kept_bits - 1);
  const float scale = std::ldexp(1.0F, -unit);
  auto units = static_cast<std::int64_t>(sum * scale);  // truncates
  for (int k = 0; k < depth; ++k) units += static_cast<std::int64_t>(terms[k] * scale);
  return std::ldexp(static_cast<float>(units), unit);
}

template <class Sum>
void multiply(MatrixProduct& product, const float (&a)[rows_of_a][max_k],
              const float (&b)[max_k][max_columns], Sum (&sums)[rows_of_a][max_columns]) {
  const int registers = product.shape.n / 2;
  const int depth = bytes_of_k / element_bytes(product.shape.a);
  const auto for_each_sum = [&](auto f) {
    std::size_t next = 0;
    for (int thread = 0; thread < warpgroup_threads; ++thread) {
      for (int i = 0; i < registers; ++i) {
        const Spot at = spot_of(thread, i);
        f(product.sums[next++], sums[at.row][at.column]);
      }
    }
  };
  for_each_sum([&](std::uint32_t word, Sum& sum) {
    sum = product.accumulate ? __builtin_bit_cast(Sum, word) : Sum{0};
  });
  if constexpr (std::is_same_v<Sum, float>) {
    if (element_bytes(product.shape.a) == 1) {
      for (int row = 0; row < rows_of_a; ++row) {
        for (int column = 0; column < product.shape.n; ++column) {
          sums[row][column] = add_aligned(sums[row][column], a[row], &b[0][column], depth);
        }
      }
      for_each_sum(
          [](std::uint32_t& word, Sum sum) { word = __builtin_bit_cast(std::uint32_t, sum); });
      return;
    }
  }
  for (int row = 0; row < rows_of_a; ++row) {
    for (int k = 0; k < depth; ++k) {
      const Sum factor = static_cast<Sum>(a[row][k]);
      for (int column = 0; column < product.shape.n; ++column) {
        sums[row][column] += factor * static_cast<Sum>(b[k][column]);
      }
    }
  }
  for_each_sum([](std::uint32_t& word, Sum sum) { word = __builtin_bit_cast(std::uint32_t, sum); });
}

}  // namespace

std::uint64_t operations_of(const WgmmaShape& shape) {
  const int products = rows_of_a * shape.n * (bytes_of_k / element_bytes(shape.a));
  return 2 * static_cast<std::uint64_t>(products);
}

std::uint32_t operand_address(std::uint64_t matrix, const OperandShape& shape, int row, int k) {
  const auto field = [&](int bit) {
    return static_cast<std::uint32_t>(matrix >> bit & 0x3fff) << 4;
  };
  const std::uint32_t leading = field(16), stride = field(32);
  const auto line = static_cast<std::uint32_t>(matrix >> 49 & 7);
  const auto mode = static_cast<std::uint32_t>(matrix >> 62);  // 0: no swizzle, 1: 128 bytes ...
  const std::uint32_t width = mode == 0 ? 0 : 256u >> mode;
  const auto r = static_cast<std::uint32_t>(row), c = static_cast<std::uint32_t>(k);
  const auto element = static_cast<std::uint32_t>(shape.element);
  std::uint32_t at = field(0);
  if (shape.turned) {
    const std::uint32_t panel = mode == 0 ? 8 : width / element;  // rows per panel
    const std::uint32_t line_bytes = mode == 0 ? piece_bytes : width;
    at += r / panel * (mode == 0 ? stride : leading) + r % panel * element;
    at += c / 8 * (mode == 0 ? leading : stride) + c % 8 * line_bytes;
  } else if (mode == 0) {
    const std::uint32_t byte = c * element;
    at += r / 8 * stride + r % 8 * piece_bytes + byte / piece_bytes * leading + byte % piece_bytes;
  } else {
    at += r / 8 * stride + r % 8 * width + c * element;
  }
  if (mode != 0) at ^= (at - (line << 7)) >> 3 & (width - piece_bytes);
  return at & 0x3ffff;
}

/// Operands and results, 4 bytes per element: 104 KiB per OS thread, allocated at first use.
struct Operands {
  float a[rows_of_a][max_k];
  float b[max_k][max_columns];
  union {
    int integers[rows_of_a][max_columns];
    float floats[rows_of_a][max_columns];
  } sums;
};

void multiply(Worker& here, const Block& block, MatrixProduct& product) {
  static thread_local const auto operands = std::make_unique<Operands>();
  auto& [a, b, sums] = *operands;
  const WgmmaShape& shape = product.shape;
  if (product.a_in_registers) {
    read_registers(product, a);
  } else {
    read_shared(here, block, product, product.a_matrix, shape_of_a(product), shape.a,
                shape.negate_a, &a[0][0], max_k, 1);
  }
  read_shared(here, block, product, product.b_matrix, shape_of_b(product), shape.b, shape.negate_b,
              &b[0][0], 1, max_columns);
  is_integer(shape.a) ? multiply(product, a, b, sums.integers)
                      : multiply(product, a, b, sums.floats);
}

/// Records the operand reads of a warp: its own 16 rows of A, and a quarter of B, since the four
/// warps share B.
void note_operands(Worker& here, const MatrixProduct& product) {
  record::Recorder* const recorder = here.recorder();
  const Thread& self = here.current();
  if (recorder == nullptr || self.lane != 0) return;
  const auto warp = static_cast<int>(self.warp - self.block->warps.data()) % 4;
  const record::Agent agent = recorder->agent(product.place);
  const auto note = [&](int, int, std::uint32_t address) {
    recorder->copied(agent, self.block->shared + offset_of(here, product, address), piece_bytes,
                     record::Access::engine_read);
  };
  if (!product.a_in_registers) {
    for_each_piece(product.a_matrix, shape_of_a(product), 16 * warp, 16 * warp + 16, note);
  }
  const OperandShape b = shape_of_b(product);
  const int first = b.rows / 8 * warp / 4 * 8, last = b.rows / 8 * (warp + 1) / 4 * 8;
  for_each_piece(product.b_matrix, b, first, last, note);
}

}  // namespace rung::simt
