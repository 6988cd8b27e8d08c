// SPDX-License-Identifier: Apache-2.0
// Python binding of gemm.
#include "rung/ops/gemm/gemm.hpp"

#include <deque>
#include <vector>

#include "python/module/call.hpp"

namespace rung::python {
namespace {

constexpr std::string_view precision_names[] = {"full", "tf32", "split"};

DType product_dtype(DType a) {
  if (a == DType::i8) return DType::i32;
  return a == DType::e4m3 || a == DType::e5m2 ? DType::bf16 : a;
}

/// Returns the shape of C. The operator checks that extents match, and its errors name them.
Extents product_shape(const Call& call, const Array& a, const Array& b, bool transpose_a,
                      bool transpose_b) {
  for (const Array* one : {&a, &b}) {
    if (one->shape().rank != 2 && one->shape().rank != 3) {
      call.reject(std::string(one == &a ? "a" : "b") + " has " + axis_count(one->shape().rank) +
                  "; accepted: 2, or 3 with the batch in front");
    }
  }
  const int last_a = a.shape().rank - 1, last_b = b.shape().rank - 1;
  const std::int64_t m = a.shape()[transpose_a ? last_a : last_a - 1];
  const std::int64_t n = b.shape()[transpose_b ? last_b - 1 : last_b];
  if (last_a == 1 && last_b == 1) return {m, n};
  const std::int64_t batch_a = last_a == 2 ? a.shape()[0] : 1;
  const std::int64_t batch_b = last_b == 2 ? b.shape()[0] : 1;
  return {batch_a == 1 ? batch_b : batch_a, m, n};
}

PyObject* run_gemm(Call& call) {
  const Array a = call.in("a");
  const Array b = call.in("b");
  Array c = call.out("out");
  GemmOptions options{.alpha = call.real("alpha"), .beta = call.real("beta")};
  options.transpose_a = call.flag();
  options.transpose_b = call.flag();
  const Array bias = call.optional_in("bias");
  options.activation = call.word("activation", activation_names);
  options.precision = call.word<Precision>("precision", precision_names);
  const Array residual = call.optional_in("residual");
  const Array scale_a = call.optional_in("scale_a");
  const Array scale_b = call.optional_in("scale_b");
  options.bias = bias;
  options.residual = residual;
  options.scale_a = scale_a;
  options.scale_b = scale_b;
  if (!c.given()) {
    if (options.beta != 0) call.reject("beta is given without out, which holds what it multiplies");
    c.make_if_left_out(a, product_shape(call, a, b, options.transpose_a, options.transpose_b),
                       product_dtype(a.dtype()));
  }
  call.run([&](Context& context, Pick pick) { gemm(context, a, b, c, options, pick); });
  return c.result();
}

/// Parses equally long lists a, b, out, bias, residual; any of the last three may be None instead
/// of a list.
PyObject* run_gemm_grouped(Call& call) {
  PyObject* const lists[] = {call.next(), call.next(), call.next(), call.next(), call.next()};
  GemmOptions options{.alpha = call.real("alpha"), .beta = call.real("beta")};
  options.transpose_a = call.flag();
  options.transpose_b = call.flag();
  options.activation = call.word("activation", activation_names);
  options.precision = call.word<Precision>("precision", precision_names);
  const Py_ssize_t count = PySequence_Size(lists[0]);
  if (count < 0) throw PythonError{};
  std::deque<Array> arrays;  // a deque, so that addresses of elements are stable
  std::vector<GemmProblem> problems(static_cast<std::size_t>(count));
  Object results = checked(PyList_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    const auto add = [&](int list, const char* name, bool written) -> Array& {
      const Object item =
          lists[list] == Py_None ? borrowed(Py_None) : checked(PySequence_GetItem(lists[list], i));
      return call.emplace(arrays, item.get(), name, written);
    };
    Array& a = add(0, "a", false);
    Array& b = add(1, "b", false);
    Array& c = add(2, "out", true);
    if (!c.given()) {
      if (options.beta != 0) call.reject("beta is given without out");
      c.make_if_left_out(a, product_shape(call, a, b, options.transpose_a, options.transpose_b),
                         product_dtype(a.dtype()));
    }
    problems[static_cast<std::size_t>(i)] = {.a = a,
                                             .b = b,
                                             .c = c,
                                             .bias = add(3, "bias", false),
                                             .residual = add(4, "residual", false)};
    PyList_SetItem(results.get(), i, c.result());
  }
  call.run([&](Context& context, Pick pick) { gemm_grouped(context, problems, options, pick); });
  return results.release();
}

PyMethodDef functions[] = {
    bound<"gemm", run_gemm>(), bound<"gemm_grouped", run_gemm_grouped>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
