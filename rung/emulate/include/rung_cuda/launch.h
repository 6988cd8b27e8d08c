// SPDX-License-Identifier: Apache-2.0
// Implementation of kernel<<<...>>>(...) and of the runtime API's launch functions.
#pragma once

#include <type_traits>

#include "rung_cuda/builtin.h"
#include "rung_cuda/runtime_types.h"

namespace rung::cuda {

struct LaunchConfig {
  static constexpr int max_described = 12;
  dim3 grid, block;
  size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
  bool cooperative = false;
  dim3 cluster;
  bool has_cluster = false;    // the launch specifies a cluster
  bool copies_unseen = false;  // arguments have destructors
  const char* name = nullptr;  // the kernel's name as spelled in the launch
  const void* code = nullptr;  // address of the kernel, if launched by address
  Place place;
  const void* caller = nullptr;  // return address of the library function that launches
  Argument arguments[max_described] = {};
};

/// A kernel call with bound arguments, executed by each thread. Copied for graphs and for launches
/// by kernels, which run later.
struct Closure {
  void* call = nullptr;
  void (*run)(const void* call) = nullptr;
  void (*destroy)(void* call) = nullptr;
  size_t bytes = 0;  // size of the call object
  // Arguments of the kernel, to compare launches.
  const void* arguments = nullptr;
  size_t argument_bytes = 0;
};
/// Launches the closure and takes ownership of it. An error is also recorded for cudaGetLastError.
cudaError_t launch(const LaunchConfig& config, Closure closure);

/// Checks the types of the arguments between <<< and >>>; declared but not defined.
void launch_shape(dim3 grid, dim3 block, size_t shared_bytes = 0, cudaStream_t stream = nullptr);

template <class Call>
Closure make_closure(const Call& call) {
  auto* const copy = new Call(call);
  return {copy,
          [](const void* one) RUNG_UNSEEN { (*static_cast<const Call*>(one))(); },
          [](void* one) { delete static_cast<Call*>(one); },
          sizeof(Call),
          copy,
          sizeof(Call)};
}

template <class Body>
struct Launcher {
  Body body;
  LaunchConfig config;

  Launcher& with(dim3 grid, dim3 block, size_t shared_bytes = 0, cudaStream_t stream = nullptr,
                 Place place = Place::current()) {
    config.grid = grid;
    config.block = block;
    config.shared_bytes = shared_bytes;
    config.stream = stream;
    config.place = place;
    return *this;
  }
  template <class... Arguments>
  void operator()(Arguments&&... arguments) {
    if constexpr (std::is_invocable_v<const Body&, std::decay_t<Arguments>...>) {
      by_value<std::decay_t<Arguments>...>(arguments...);
    } else {
      by_value<Kept<Arguments, takes<Arguments, Arguments...>>...>(arguments...);
    }
  }

 private:
  /// Argument of a reference parameter: the address of the original object, as on a GPU.
  template <class T>
  struct Original {
    T* address;
    Original(T& original) : address(&original) {}  // NOLINT(google-explicit-constructor)
    operator T&() const { return *address; }       // NOLINT(google-explicit-constructor)
  };
  /// True if the kernel accepts this argument by value while all other arguments are unchanged.
  template <class One, class... Arguments>
  static constexpr bool takes =
      !std::is_lvalue_reference_v<One> ||
      std::is_invocable_v<const Body&, std::conditional_t<std::is_same_v<One, Arguments>,
                                                          std::decay_t<One>, Arguments>...>;
  template <class Argument, bool by_copy>
  using Kept = std::conditional_t<by_copy, std::decay_t<Argument>,
                                  Original<std::remove_reference_t<Argument>>>;

  /// Bitwise copy of an argument with a destructor, as on a GPU. The host's own copy is destroyed
  /// when the launch returns; bitwise copies are never destroyed.
  template <class T>
  struct Bits {
    alignas(T) unsigned char bytes[sizeof(T)];
    Bits(const T& original) {  // NOLINT(google-explicit-constructor)
      __builtin_memcpy(bytes, static_cast<const void*>(&original), sizeof(T));
    }
  };
  template <class T>
  using Passed = std::conditional_t<std::is_trivially_destructible_v<T>, T, Bits<T>>;

  template <class T>
  static T& given(T& argument) {
    return argument;
  }
  template <class T>
  static T& given(Bits<T>& argument) {
    return *reinterpret_cast<T*>(argument.bytes);
  }
  template <class T>
  static T& given(Original<T>& argument) {
    return *argument.address;
  }
  template <class... Arguments>
  void by_value(Arguments... arguments) {
    // Arguments are const, but a kernel's parameters may be non-const.
    constexpr bool plain = (std::is_trivially_destructible_v<Arguments> && ...);
    const auto call = [run = body, ... passed = Passed<Arguments>(arguments)]() RUNG_UNSEEN {
      if constexpr (!plain) suspend_recording();
      run(given(const_cast<Passed<Arguments>&>(passed))...);
      if constexpr (!plain) resume_recording();
    };
    config.copies_unseen = !plain;
    int count = 0;
    ((count < LaunchConfig::max_described
          ? void(config.arguments[count++] = describe_argument(arguments))
          : void()),
     ...);
    launch(config, make_closure(call));
  }
};

template <class Body>
Launcher<Body> launcher(const char* name, Body body) {
  Launcher<Body> made{body, {}};
  made.config.name = name;
  return made;
}

/// Launches a kernel by its address; copies the arguments, given by pointers, immediately.
cudaError_t launch_by_address(LaunchConfig config, void** arguments);

}  // namespace rung::cuda
