// SPDX-License-Identifier: Apache-2.0
// Options of the C functions. A table per operator maps the fields of C's struct to those of the
// C++ struct; defaults, conversion, checks and the call follow from it:
//
//   using C = rung_softmax_options;
//   using Cpp = rung::SoftmaxOptions;
//   constexpr auto table = options_table<C, Cpp>(
//       "rung_softmax_options", field("axis", &C::axis, &Cpp::axis), ...);
//
//   rung_status rung_softmax_options_init(C* options, size_t size) {
//     return table.init(options, size);
//   }
//   rung_status rung_softmax(rung_context* context, const rung_tensor* x, const rung_tensor* y,
//                            const C* options) {
//     return table.call(rung::softmax, context, options, Argument{x, "x"}, Argument{y, "y"});
//   }
//
// C's struct begins with `size_t size`; its first version ends with `const char* rung`. Later
// versions append fields. Internal to the library.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "rung/c/api.hpp"
#include "rung/core/per_axis.hpp"

namespace rung::c_api {

/// Tensor argument of a C function, with the parameter's name; optional ones may be NULL.
struct Argument {
  const rung_tensor* tensor;
  const char* name;
  bool optional = false;
};
/// Checks and converts a tensor argument. An optional NULL becomes a reference without data, which
/// operators treat as absent.
TensorRef reference(const Argument& argument);

/// Returns the `count` numbers at `numbers`, at most max_rank.
Extents extents(const std::int64_t* numbers, const char* name, int count, const char* count_name);

inline void convert(double from, double& to, const char*) { to = from; }
inline void convert(int from, int& to, const char*) { to = from; }
inline void convert(std::int64_t from, std::int64_t& to, const char*) { to = from; }
inline void convert(int from, bool& to, const char*) { to = from != 0; }
template <class Void>
void convert(const rung_tensor* from, BasicTensorRef<Void>& to, const char* name) {
  if (from != nullptr) to = reference(Argument{from, name});
}

/// Option that is a number, a flag (int in C, bool in C++) or an optional tensor (default: absent).
template <class C, class CValue, class Cpp, class CppValue>
struct Field {
  const char* name;
  CValue C::*in_c;
  CppValue Cpp::*in_cpp;

  void read(const C& from, Cpp& to) const { convert(from.*in_c, to.*in_cpp, name); }
  void set_default(const Cpp& from, C& to) const {
    if constexpr (std::is_arithmetic_v<CValue>) to.*in_c = from.*in_cpp;
  }
};
template <class C, class CValue, class Cpp, class CppValue>
constexpr auto field(const char* name, CValue C::*in_c, CppValue Cpp::*in_cpp) {
  return Field<C, CValue, Cpp, CppValue>{name, in_c, in_cpp};
}

/// Option that is an enumerator, 0 to `last`.
template <class C, class CEnum, class Cpp, class CppEnum>
struct Choice {
  const char* name;
  CEnum C::*in_c;
  CppEnum Cpp::*in_cpp;
  CppEnum last;

  void read(const C& from, Cpp& to) const { to.*in_cpp = checked_enum(from.*in_c, last, {name}); }
  void set_default(const Cpp& from, C& to) const { to.*in_c = static_cast<CEnum>(from.*in_cpp); }
};
template <class C, class CEnum, class Cpp, class CppEnum>
constexpr auto choice(const char* name, CEnum C::*in_c, CppEnum Cpp::*in_cpp, CppEnum last) {
  return Choice<C, CEnum, Cpp, CppEnum>{name, in_c, in_cpp, last};
}

/// Option that is a list of axes, a pointer and a count in C. Default: empty.
template <class C, class Cpp>
struct List {
  const char* name;
  const std::int64_t* C::*numbers;
  const char* count_name;
  int C::*count;
  Extents Cpp::*in_cpp;

  void read(const C& from, Cpp& to) const {
    to.*in_cpp = extents(from.*numbers, name, from.*count, count_name);
  }
  void set_default(const Cpp&, C&) const {}
};
template <class C, class Cpp>
constexpr auto list(const char* name, const std::int64_t* C::*numbers, const char* count_name,
                    int C::*count, Extents Cpp::*in_cpp) {
  return List<C, Cpp>{name, numbers, count_name, count, in_cpp};
}

/// Option with a number per image axis, an array in C.
template <class C, int N, class Cpp>
struct PerAxisField {
  const char* name;
  int (C::*in_c)[N];
  PerAxis Cpp::*in_cpp;

  void read(const C& from, Cpp& to) const {
    static_assert(N > 1 && N <= PerAxis::most);
    PerAxis& numbers = to.*in_cpp;
    numbers.count = N;
    std::copy_n(from.*in_c, N, numbers.at);
  }
  void set_default(const Cpp& from, C& to) const {
    std::fill_n(to.*in_c, N, (from.*in_cpp).along(0));
  }
};
template <class C, int N, class Cpp>
constexpr auto per_axis(const char* name, int (C::*in_c)[N], PerAxis Cpp::*in_cpp) {
  return PerAxisField<C, N, Cpp>{name, in_c, in_cpp};
}

/// Returns whether an enumerator of C equals that of C++; for static_assert.
template <class CEnum, class CppEnum>
constexpr bool same(CEnum in_c, CppEnum in_cpp) {
  return static_cast<int>(in_c) == static_cast<int>(in_cpp);
}

template <class C, class Cpp, class... Fields>
class OptionsTable {
 public:
  constexpr explicit OptionsTable(const char* type, Fields... fields)
      : type_(type), fields_(fields...) {}

  /// Sets a program's options, `size` bytes, to the defaults. If the program's struct is longer
  /// than this library's, the unknown fields become zero, which means off.
  rung_status init(C* options, std::size_t size) const noexcept {
    return guarded([&] {
      const C defaults = make_defaults();
      initialize(options, size, &defaults, sizeof defaults, type_);
    });
  }

  /// Calls function(context, tensors..., options, pick) after checking the arguments from left to
  /// right.
  template <class Function, std::same_as<Argument>... Arguments>
  rung_status call(const Function& function, rung_context* context, const C* options,
                   const Arguments&... arguments) const noexcept {
    return guarded([&] {
      require(context, {"context"});
      const TensorRef tensors[] = {reference(arguments)...};
      Pick pick = best;
      Cpp checked;
      read(options, checked, pick);
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        function(context->context, tensors[I]..., checked, pick);
      }
      (std::index_sequence_for<Arguments...>());
    });
  }

 private:
  [[nodiscard]] C make_defaults() const {
    C options{};
    options.size = sizeof options;
    const Cpp defaults{};
    std::apply([&](const Fields&... field) { (field.set_default(defaults, options), ...); },
               fields_);
    return options;
  }

  /// Reads the options that the program's struct has; the others keep their defaults.
  void read(const C* given, Cpp& to, Pick& pick) const {
    if (given == nullptr) return;
    if (given->size == sizeof(C)) return read_all(*given, to, pick);  // of this version: no copy
    static_assert(offsetof(C, size) == 0);
    constexpr std::size_t first_version = offsetof(C, rung) + sizeof(const char*);
    C options = make_defaults();
    complete(&options, sizeof options, given, given->size, first_version, type_);
    read_all(options, to, pick);
  }

  void read_all(const C& options, Cpp& to, Pick& pick) const {
    std::apply([&](const Fields&... field) { (field.read(options, to), ...); }, fields_);
    if (options.rung != nullptr) pick.rung = options.rung;
  }

  const char* type_;
  std::tuple<Fields...> fields_;
};
/// Calls a function that has no options, function(context, tensors..., pick), with the best rung.
template <class Function, std::same_as<Argument>... Arguments>
rung_status call_without_options(const Function& function, rung_context* context,
                                 const Arguments&... arguments) noexcept {
  return guarded([&] {
    require(context, {"context"});
    const TensorRef tensors[] = {reference(arguments)...};
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      function(context->context, tensors[I]..., best);
    }
    (std::index_sequence_for<Arguments...>());
  });
}

/// Makes the table of an operator. `type` is the name of C's struct, for messages.
template <class C, class Cpp, class... Fields>
constexpr auto options_table(const char* type, Fields... fields) {
  return OptionsTable<C, Cpp, Fields...>(type, fields...);
}

}  // namespace rung::c_api
