// SPDX-License-Identifier: Apache-2.0
// Calls that must not compile, one per CASE, for a reason that the compiler names; case 0 compiles.
#include <list>
#include <vector>

#include "rung/core/tensor_ref.hpp"

using rung::ConstTensorRef;
using rung::DType;
using rung::TensorRef;

void operation(const ConstTensorRef& x, const TensorRef& y);

struct MdspanOfConst {
  const float* handle = nullptr;
  [[nodiscard]] const float* data_handle() const { return handle; }
  [[nodiscard]] std::size_t rank() const { return 1; }
  [[nodiscard]] std::size_t extent(std::size_t) const { return 1; }
  [[nodiscard]] std::size_t stride(std::size_t) const { return 1; }
};

void call(std::vector<float>& floats, const std::vector<float>& constants, const float* pointer,
          const void* memory) {
  static_cast<void>(constants);
  static_cast<void>(pointer);
  static_cast<void>(memory);
  float matrix[2][3] = {};
  const MdspanOfConst mdspan;
#if CASE == 0
  operation(matrix, floats);
  operation(mdspan, {floats, {1}});
  operation({matrix, {6}}, {floats.data(), DType::f32, {1}});
  const unsigned short one = 1;
  const long long two = 2;
  operation({floats, {floats.size()}},
            {floats.data(), DType::f32, {floats.size() / 2, two, one, 1}});
#elif CASE == 1
  operation(floats, constants);
#elif CASE == 2
  operation(floats, {constants, {1}});
#elif CASE == 3
  operation(floats, {pointer, {1}});
#elif CASE == 4
  operation(floats, {pointer, DType::f32, {1}});
#elif CASE == 5
  operation(floats, {memory, DType::f32, {1}});
#elif CASE == 6
  operation(floats, mdspan);
#elif CASE == 10
  std::vector<unsigned> numbers(1);
  operation(numbers, floats);
#elif CASE == 11
  std::vector<long double> numbers(1);
  operation({numbers, {1}}, floats);
#elif CASE == 12
  std::vector<unsigned> numbers(1);
  operation({numbers.data(), {1}, {1}}, floats);
#elif CASE == 13
  unsigned numbers[2][2] = {};
  operation(numbers, floats);
#elif CASE == 14
  std::vector<_Float16> numbers(1);
  operation(numbers, floats);
#elif CASE == 20
  std::vector<bool> bits(1);
  operation(bits, floats);
#elif CASE == 21
  std::list<float> list(1);
  operation(list, floats);
#elif CASE == 30
  operation(std::vector<float>(3), floats);
#elif CASE == 31
  operation({std::vector<float>(3), {3}}, floats);
#elif CASE == 40
  operation({memory, {1}}, floats);
#elif CASE == 41
  operation({floats, DType::f32, {1}}, floats);
#elif CASE == 50
  float sum = 0;
  operation(floats, sum);
#elif CASE == 51
  operation(1.5, floats);
#endif
}
