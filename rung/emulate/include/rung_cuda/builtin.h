// SPDX-License-Identifier: Apache-2.0
// Runtime interface of rewritten sources: shared variables, and the description of the running
// kernel.
#pragma once

#include <stddef.h>
#include <typeinfo>
#include <utility>

#include "rung/simt/sync.hpp"
#include "rung_cuda/words.h"

// Excludes launch code from the kernel's record.
#define RUNG_UNSEEN __attribute__((no_sanitize("thread"), no_sanitize_coverage))

namespace rung::cuda {

using simt::Place;

/// Registers a shared variable of the program and returns its number; the offset depends on the
/// kernel. `scope`: mangled name of a type in the declaring function; `type`: mangled name of the
/// variable's type.
int register_shared(size_t bytes, size_t alignment, const char* scope, const char* type);

/// Offsets of one kernel's shared variables, assigned at first use.
struct SharedLayout {
  static constexpr unsigned unknown = ~0u;
  unsigned* offsets;
};

/// State shared by the threads of one launch.
struct LaunchData {
  const char* kernel;  // mangled name; null until the first thread has started
  const SharedLayout* layout;
  size_t static_begin;  // offset of static shared memory, which follows dynamic shared memory
  size_t shared_end;    // end of the shared memory in use so far
  bool copies_unseen;   // recording is suspended while parameters with destructors are copied
};

extern __thread char* const shared_base __asm__("rung_simt_shared")
    __attribute__((tls_model("initial-exec")));
extern __thread LaunchData* const launch_data __asm__("rung_simt_launch_data")
    __attribute__((tls_model("initial-exec")));

unsigned place_shared(int variable);

// The alignment is a separate argument, since template arguments lose a type's attributes.
template <class T, class Tag, size_t alignment>
struct SharedVariable {
  static inline const int number =
      register_shared(sizeof(T), alignment, typeid(Tag).name(), typeid(T).name());
};

template <class T, class Tag, size_t alignment>
RUNG_UNSEEN __attribute__((noinline)) T& shared_variable() {
  const int number = SharedVariable<T, Tag, alignment>::number;
  unsigned offset = launch_data->layout->offsets[number];
  if (__builtin_expect(offset == SharedLayout::unknown, 0)) offset = place_shared(number);
  return *reinterpret_cast<T*>(shared_base + launch_data->static_begin + offset);
}
template <class T>
inline T& dynamic_shared() {
  return *reinterpret_cast<T*>(shared_base);
}

template <class T>
struct DecayedType;
template <class T>
struct DecayedType<T[]> {
  using Type = T*;
};
template <class T>
using Decayed = typename DecayedType<T>::Type;

/// A kernel argument as described in findings.
struct Argument {
  const void* pointer = nullptr;  // valid if type is not null
  const char* type = nullptr;     // mangled target type
  size_t element_bytes = 0;
  long long integer = 0;
  bool is_integer = false;
};
template <class T>
Argument describe_argument(const T& value) {
  if constexpr (std::is_pointer_v<T>) {
    using Pointee = std::remove_pointer_t<T>;
    if constexpr (std::is_object_v<Pointee>) {
      const volatile void* const pointer = value;
      return {const_cast<const void*>(pointer), typeid(Pointee).name(), sizeof(Pointee)};
    } else {
      return {};
    }
  } else if constexpr (std::is_integral_v<T>) {
    return {nullptr, nullptr, 0, static_cast<long long>(value), true};
  } else {
    return {};
  }
}

/// A kernel with a known signature, which can be called with arguments given by address.
struct KernelEntry {
  const void* code;
  const char* name;  // mangled
  void (*invoke)(const void* code, void** arguments);
  const size_t* sizes;  // size of each parameter
  int count;
  /// Describes the first arguments, at most `most`, for findings.
  void (*describe)(void** arguments, Argument* to, int most);
};
int register_kernel(const KernelEntry& kernel);

/// Type in which a kernel argument is stored: a pointer for a reference parameter.
template <class Parameter>
struct Passed {
  using Type = std::remove_cv_t<Parameter>;
  static Type& value(void* argument) { return *static_cast<Type*>(argument); }
};
template <class Parameter>
struct Passed<Parameter&> {
  using Type = Parameter*;
  static Parameter& value(void* argument) { return **static_cast<Type*>(argument); }
};

template <class... Parameters>
struct Signature {
  static constexpr size_t sizes[] = {sizeof(typename Passed<Parameters>::Type)..., 0};
  RUNG_UNSEEN static void invoke(const void* code, void** arguments) {
    call(code, arguments, std::index_sequence_for<Parameters...>{});
  }
  static void describe(void** arguments, Argument* to, int most) {
    int i = 0;
    ((i < most ? void(to[i] = describe_argument(
                          *static_cast<typename Passed<Parameters>::Type*>(arguments[i])))
               : void(),
      ++i),
     ...);
    (void)arguments;
    (void)to;
    (void)most;
    (void)i;
  }
  template <size_t... Indices>
  RUNG_UNSEEN static void call(const void* code, void** arguments,
                               std::index_sequence<Indices...>) {
    const auto kernel = reinterpret_cast<void (*)(Parameters...)>(const_cast<void*>(code));
    (void)arguments;
    kernel(Passed<Parameters>::value(arguments[Indices])...);
  }
};
template <class... Parameters>
KernelEntry describe(void (*kernel)(Parameters...), const char* name) {
  return {reinterpret_cast<const void*>(kernel),
          name,
          &Signature<Parameters...>::invoke,
          Signature<Parameters...>::sizes,
          sizeof...(Parameters),
          &Signature<Parameters...>::describe};
}

/// Launch requirements in a kernel's declaration; zeros if there are none.
struct Demands {
  unsigned max_threads = 0;      // __launch_bounds__: maximum threads per block
  unsigned max_cluster = 0;      // __launch_bounds__: maximum blocks per cluster
  dim3 cluster = dim3(0, 0, 0);  // __cluster_dims__
  /// Sets the limits. Ignores the minimum number of blocks per SM: it limits registers, which the
  /// simulator does not allocate.
  constexpr void launch_bounds(unsigned threads, unsigned = 0, unsigned cluster_blocks = 0) {
    max_threads = threads;
    max_cluster = cluster_blocks;
  }
  constexpr void cluster_dims(unsigned x, unsigned y = 1, unsigned z = 1) {
    cluster.x = x;
    cluster.y = y;
    cluster.z = z;
  }
  /// Maximum number of __restrict__ parameters that are described.
  static constexpr int max_restricted = 12;
  const char* restricted_names[max_restricted] = {};
  constexpr void restricted(int parameter, const char* name) {
    if (parameter < max_restricted) restricted_names[parameter] = name;
  }
};
int register_demands(const char* kernel, const Demands& demands);

/// Requirements of the kernel of `Tag`, registered when the program is loaded.
template <class Tag>
struct DemandsOf {
  static Demands find() {
    Demands all;
    Tag::rung_demands(all);
    return all;
  }
  static inline const int number = register_demands(typeid(Tag).name(), find());
};

/// Returns its argument; selects from an overload set the function that can be a kernel.
template <class... Parameters>
constexpr auto only_kernel(void (*kernel)(Parameters...)) {
  return kernel;
}

template <class Tag, auto kernel>
struct Kernel {
  static inline const int number = register_kernel(describe(kernel, typeid(Tag).name()));
};

/// Records which kernel is running. Fails the launch if it violates the kernel's requirements, and
/// ends a program that calls a kernel as a function.
void begin_kernel(const char* name);

/// Name of the tag's type, computed at load time: inside a kernel the call of name() would be
/// recorded.
template <class Tag>
struct NameOf {
  static inline const char* const name = typeid(Tag).name();
};

/// Suspends or resumes recording of the running thread's accesses.
void suspend_recording();
void resume_recording();

/// Object at the start of a kernel, specific to its parameter types. It suspends recording while a
/// thread copies or destroys parameters, which GPU threads do not do.
template <bool trivial>
struct ParameterGuard {};
template <>
struct ParameterGuard<false> {
  ParameterGuard() = default;
  ParameterGuard(const ParameterGuard&) = delete;
  ~ParameterGuard() { suspend_recording(); }
};
template <class... T>
using Parameters = ParameterGuard<(std::is_trivially_destructible_v<T> && ...)>;

/// Registers the kernel as running; prologue of every kernel.
template <class Tag>
RUNG_UNSEEN __attribute__((noinline)) void enter() {
  if constexpr (requires(Demands all) { Tag::rung_demands(all); }) (void)DemandsOf<Tag>::number;
  if (__builtin_expect(launch_data == nullptr || launch_data->kernel == nullptr, 0)) {
    begin_kernel(NameOf<Tag>::name);
  }
  if (__builtin_expect(launch_data->copies_unseen, 0)) resume_recording();
}
/// Registers the kernel as running; prologue of a kernel that is identified by its address.
template <class Tag, auto kernel>
RUNG_UNSEEN __attribute__((noinline)) void enter() {
  (void)Kernel<Tag, kernel>::number;
  enter<Tag>();
}

}  // namespace rung::cuda
