// SPDX-License-Identifier: Apache-2.0
// Kernel launches for OpenCL rungs: a kernel, its work-groups and its arguments. The source is
// compiled on first use and cached; compiler errors show the line of the .cl file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/opencl/limits.hpp"

namespace rung::opencl {

/// A .cl file, embedded by the build.
struct Source {
  const char* path;  // relative to the root of the source tree: "rung/..."
  const char* text;
};

struct Kernel {
  const Source& source;
  const char* name;
  std::string options = {};  // compiler options, such as "-DTILE=16"
};

struct LaunchExtent {
  std::int64_t x = 1, y = 1, z = 1;
};

/// The index space of a launch: `groups` work-groups of `items` work-items along each axis.
struct Groups {
  LaunchExtent groups = {};
  LaunchExtent items = {};
};

/// A pointer argument: the kernel receives the buffer and, as the next argument, the index of the
/// first element in the buffer (ulong).
struct Pointer {
  const void* data;
  std::size_t element_bytes;
};
template <class Void>
Pointer pointer_to(const BasicTensorRef<Void>& tensor) {
  return {tensor.data, size_of(tensor.dtype)};
}
template <class T>
Pointer pointer_to(const T* data) {
  return {data, sizeof(T)};
}

/// A `constant` argument: `bytes` bytes of device memory, copied before the kernel runs.
struct Constant {
  const void* data;
  std::size_t bytes;
};

/// A `local` argument: `bytes` bytes of local memory per work-group.
struct Local {
  std::size_t bytes;
};

namespace detail {
struct Argument {
  enum class Kind : std::uint8_t { value, pointer, constant, local } kind;
  const void* data;
  std::size_t bytes;  // per element for a pointer, else in total
};
inline Argument argument(const Pointer& given) {
  return {Argument::Kind::pointer, given.data, given.element_bytes};
}
inline Argument argument(const Constant& given) {
  return {Argument::Kind::constant, given.data, given.bytes};
}
inline Argument argument(const Local& given) {
  return {Argument::Kind::local, nullptr, given.bytes};
}
/// Makes an argument of a number, or of a struct of numbers without padding, which the kernel
/// declares identically.
template <class T>
Argument argument(const T& given) {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
  return {Argument::Kind::value, &given, sizeof(T)};
}

RUNG_API void launch(const Context& context, const Kernel& kernel, const Groups& range,
                     const Argument* arguments, std::size_t count);
}  // namespace detail

/// Enqueues a kernel. Throws Error(device) if the compiler or the queue rejects it,
/// Error(invalid_argument) for memory outside the device's buffers.
template <class... Arguments>
void launch(const Context& context, const Kernel& kernel, const Groups& range,
            const Arguments&... arguments) {
  const std::array<detail::Argument, sizeof...(Arguments)> all{detail::argument(arguments)...};
  detail::launch(context, kernel, range, all.data(), all.size());
}

}  // namespace rung::opencl
